# Varnish 6 or later in front of the edge, with CDN_SECONDS set there. Start it with two addresses:
#
#   varnishd -f deploy/varnish.vcl -a :6081 -a purge=127.0.0.1:6082 -s malloc,256m
#
# Readers come to the first, by the proxy that has the certificate. The second is for purges alone,
# by deploy/varnish_purge.py, and must not be reached from outside.
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
    if (req.url ~ "^/(api|desk|shared|docs|\.well-known)(/|$)" || req.url ~ "\?") {
        return (pass);
    }
    # An agent that asks for Markdown gets it from the edge; all others share one copy of a page,
    # whatever else their browser accepts.
    if (req.http.Accept ~ "(?i)text/markdown") {
        return (pass);
    }
    set req.http.Accept = "text/html, */*;q=0.5";
}
