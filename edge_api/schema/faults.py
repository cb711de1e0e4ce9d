"""A pydantic fault as half a sentence, in words that a client of an HTTP API expects."""

from pydantic_core import ErrorDetails

_SENTENCES = {
    "missing": "is required",
    "string_type": "must be a string",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "bool_type": "must be true or false",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "extra_forbidden": "is not a known member",
    "json_invalid": "is not valid JSON",
    "too_short": "must have {min_length} {things} or more",
    "string_too_short": "must have {min_length} characters or more",
    "too_long": "must have {max_length} {things} or fewer",
    "string_too_long": "must have {max_length} characters or fewer",
    "greater_than_equal": "must be {ge} or more",
    "less_than_equal": "must be {le} or less",
    "literal_error": "must be one of {expected}",
    "enum": "must be one of {expected}",
    "value_error": "{error}",
}


def sentence_of(fault: ErrorDetails) -> str:
    """Return what is wrong with the value, to stand behind its name and a colon."""
    sentence = _SENTENCES.get(fault["type"])
    if sentence is None:
        return fault["msg"][:1].lower() + fault["msg"][1:]
    things = "characters" if isinstance(fault["input"], str) else "items"
    return sentence.format(things=things, **fault.get("ctx", {}))
