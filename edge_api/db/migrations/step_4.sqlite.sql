-- A request for access may ask for an API key and an access token at once.

ALTER TABLE access_requests ADD COLUMN second_type TEXT
    CHECK (second_type IN ('api_key', 'access_token'));

ALTER TABLE access_requests ADD COLUMN second_credential_id TEXT
    CHECK (second_credential_id GLOB '????????-????-????-????-????????????');
