# Varnish 6 or later in front of the edge, with CDN_SECONDS set there. Start it with two addresses:
#
#   varnishd -n journal -f deploy/varnish.vcl -a 127.0.0.1:6091 -a purge=127.0.0.1:6092 -s malloc,256m
#
# Readers come to the first, by the proxy that has the certificate. The second is for purges alone,
# by deploy/varnish_purge.py. Neither may be reached from outside. Debian's own Varnish has 6081 and
# 6082. Another journal needs a Varnish of its own, with another name and other ports.
vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "8000";
}

sub vcl_recv {
    if (local.socket == "purge") {
        if (req.method == "PURGE") {
            return (purge);
        }
        if (req.method == "BAN") {
            ban("obj.status != 0");
            return (synth(200, "Everything is purged"));
        }
        return (synth(405, "PURGE or BAN"));
    }
    # The edge alone answers these: they are for one person, or for programs.
    if (req.url ~ "^/(api|desk|docs|metrics|shared|\.well-known)(/|$)" || req.url ~ "\?" ||
        req.url ~ "^/(contact|search|subscribe|unsubscribe)(/|$)" ||
        req.http.Authorization || req.http.Cookie ||
        (req.method != "GET" && req.method != "HEAD")) {
        return (pass);
    }
    # An agent that asks for Markdown gets it from the edge; all others share one copy of a page,
    # whatever else their browser accepts.
    if (req.http.Accept ~ "(?i)text/markdown") {
        return (pass);
    }
    set req.http.Accept = "text/html, */*;q=0.5";
}
