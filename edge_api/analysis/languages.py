"""Languages: their tags (BCP 47), their words, and guesses at the language of a text.

Common words identify a language, and are no keywords. A language that is not listed is analysed
without what depends on it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from unicodedata import normalize

UNKNOWN: Final = "und"  # the tag of an unknown language (section 4.1)
LONGEST: Final = 35  # characters, enough for every tag in use (section 4.4.1)

_TAG: Final = re.compile(
    r"(?:[a-z]{2,3}(?:-[a-z]{3}){0,3}|[a-z]{4,8})"
    r"(?:-[a-z]{4})?"
    r"(?:-(?:[a-z]{2}|[0-9]{3}))?"
    r"(?:-(?:[a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"
    r"(?:-[0-9a-wyz](?:-[a-z0-9]{2,8})+)*"
    r"(?:-x(?:-[a-z0-9]{1,8})+)?"
)

_SCRIPT: Final = re.compile(r"[a-z]{4}")
_REGION: Final = re.compile(r"[a-z]{2}")


def primary(tag: str) -> str:
    """Return the language in a tag, without script and region."""
    return tag.partition("-")[0].lower()


def normalize_tag(stated: str) -> str | None:
    """Return a tag in its usual case, or `None` if it names no language."""
    tag = stated.strip().replace("_", "-").lower()
    is_tag = len(tag) <= LONGEST and tag.isascii() and _TAG.fullmatch(tag) is not None
    return _spell(tag) if is_tag and primary(tag) != UNKNOWN else None


def _spell(tag: str) -> str:
    """Return a lower-case tag in the usual case: `zh-Hant-TW` (section 2.1.1)."""
    parts = tag.split("-")
    plain = next((at for at, part in enumerate(parts) if len(part) == 1), len(parts))
    for at, part in enumerate(parts[1:plain], start=1):
        if _SCRIPT.fullmatch(part):
            parts[at] = part.title()
        elif _REGION.fullmatch(part):
            parts[at] = part.upper()
    return "-".join(parts)


@dataclass(frozen=True, slots=True)
class Flesch:
    """The coefficients of a reading ease formula: base - sentence * words - word * syllables."""

    base: float
    sentence: float
    word: float
    hyphenation: str  # the dictionary for counting syllables


@dataclass(frozen=True, slots=True)
class Language:
    """One language."""

    common: frozenset[str]  # words that carry no subject, folded
    letters: str = ""  # of its alphabet beyond a to z, folded
    abbreviations: frozenset[str] = frozenset()
    """Folded, without their full stop, which ends no sentence."""
    flesch: Flesch | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NONE: Final = Language(frozenset())

LANGUAGES: Final[Mapping[str, Language]] = {
    "en": Language(
        _words(
            "a about above after again against all also although always am an and another any "
            "are aren't around as at away back be became because become been before being "
            "below between both but by came can can't cannot come could couldn't did didn't do "
            "does doesn't doing don't done down during each either else even ever every few "
            "first for from further get gets getting give given go goes going got had hadn't "
            "has hasn't have haven't having he he's her here here's hers herself him himself "
            "his how however i i'd i'll i'm i've if in instead into is isn't it it's its "
            "itself just keep kind know last least less let let's like likely made make makes "
            "making many may maybe me mean might more most much must my myself need needs "
            "never new next no nor not nothing now of off often on once one ones only onto or "
            "other others our ours ourselves out over own part perhaps put quite rather really "
            "same say says see seem seen several shall she she's should shouldn't since so "
            "some something soon still such take than that that's the their theirs them "
            "themselves then there there's therefore these they they'd they'll they're "
            "they've thing things this those though three through thus to together too toward "
            "two under until up upon us use used uses using very via want was wasn't way ways "
            "we we'd we'll we're we've well went were weren't what what's when where where's "
            "whether which while who who's whole whom whose why will with within without won't "
            "would wouldn't yes yet you you'd you'll you're you've your yours yourself"
        ),
        "",
        _words(
            "mr mrs ms dr prof sr jr st vs etc eg ie e.g i.e cf no vol fig dept est approx inc "
            "ltd co corp u.s u.k a.m p.m jan feb mar apr jun jul aug sep sept oct nov dec"
        ),
        Flesch(206.835, 1.015, 84.6, "en_US"),  # Flesch 1948
    ),
    "de": Language(
        _words(
            "aber alle allem allen aller alles als also am an andere anderen auch auf aus bei "
            "beim bin bis bist da dabei damit dann das dass dazu dein dem den denn der des "
            "deren dessen dich die dies diese diesem diesen dieser dieses dir doch dort du "
            "durch ein eine einem einen einer eines einige er es etwas euch euer für gegen "
            "gibt hab habe haben hat hatte hatten hier hin ich ihm ihn ihnen ihr ihre ihrem "
            "ihren ihrer im immer in indem ins ist ja jede jedem jeden jeder jedes jetzt kann "
            "kein keine keinen können könnte machen man mehr mein meine mich mir mit muss "
            "müssen nach nicht nichts noch nun nur ob oder ohne schon sehr sein seine seinem "
            "seinen seiner sich sie sind so solche soll sollen sondern sonst über um und uns "
            "unser unsere unter viel vom von vor war waren warum was weil wenn wer werden wie "
            "wieder will wir wird wo wurde wurden zu zum zur zwar zwischen"
        ),
        "äöüß",
        _words("z b d h u a usw bzw ca vgl dr prof nr str abs bspw evtl ggf inkl sog st z.b"),
        Flesch(180.0, 1.0, 58.5, "de_DE"),  # Amstad 1978
    ),
    "fr": Language(
        _words(
            "à au aucun aussi autre autres aux avait avant avec avoir bien car ce cela ces cet "
            "cette ceux chaque chez comme comment dans de depuis des deux donc dont du elle "
            "elles en encore entre est et étaient était être eu fait faire il ils je jusque la "
            "le les leur leurs lui ma mais me même mes moi moins mon ne nos notre nous on ont "
            "ou où par parce pas peu peut peuvent plus pour pourquoi quand que quel quelle qui "
            "sa sans se sera ses si son sont sous sur ta tes toi ton toujours tous tout toute "
            "toutes très tu un une vers vos votre vous y"
        ),
        "àâæçéèêëîïôœùûüÿ",
        _words("m mme dr etc cf p ex av st"),
    ),
    "es": Language(
        _words(
            "a al algo algunos ante antes aquí así aunque cada como con contra cual cuando de "
            "del desde donde dos durante e el él ella ellas ellos en entre era eran es esa ese "
            "eso esta está estaba están estas este esto estos fue fueron ha había hace hacer "
            "han hasta hay la las le les lo los más me mi mientras muy nada ni no nos nosotros "
            "nuestra nuestro o otra otras otro otros para pero poco por porque puede pueden "
            "pues que qué quien se sea según ser si sí sido sin sobre son su sus también tan "
            "tanto te tiene tienen todo todos tu un una uno unos usted y ya yo"
        ),
        "áéíñóúü",
        _words("sr sra dr ud uds etc p ej"),
    ),
    "it": Language(
        _words(
            "a ad al alla alle agli ai anche ancora avere aveva che chi ci come con contro "
            "cosa così cui da dal dalla dalle degli dei del della delle dello di dopo dove "
            "due e è ed era essere fa fare fino fra gli ha hanno ho i il in io la le lei lo "
            "loro lui ma mi mio molto ne nei nel nella nelle noi non nostro o ogni per perché "
            "più poi "
            "può qual quale quando quanto quella quelle quello questa queste questi questo qui "
            "se sempre senza si sia sono sotto su sua sue sugli sul sulla suo tra tutti tutto "
            "un una uno voi"
        ),
        "àèéìíîòóùú",
        _words("sig dott ecc es pag"),
    ),
    "nl": Language(
        _words(
            "aan al alle als altijd andere bij daar dan dat de deze die dit doen door dus een "
            "eens en er ge geen had heb hebben heeft hem het hier hij hoe hun ik in is ja je "
            "jij kan kon kunnen maar me meer men met mij mijn moet moeten na naar niet niets "
            "nog nu of om omdat onder ons onze ook op over te tegen toch toen tot u uit uw van "
            "veel voor waar want waren was wat we wel werd wie wij wil worden wordt zal ze zei "
            "zelf zich zij zijn zo zonder zou"
        ),
        "áéèëïíóöüú",
        _words("bijv enz o.a d.w.z dr nr blz"),
    ),
    "pt": Language(
        _words(
            "a ao aos aquela aquele as às até cada com como da das de dela dele deles depois "
            "do dos e é ela elas ele eles em entre era essa esse esta está estão estar este eu "
            "foi foram há isso isto já lhe mais mas me mesmo meu minha muito na não nas nem no "
            "nos nós nossa nosso num numa o os ou para pela pelas pelo pelos por porque qual "
            "quando que quem são se seja sem ser seu seus só sobre sua suas também te tem têm "
            "ter teu tu tudo um uma umas uns você vocês"
        ),
        "àáâãçéêíóôõúü",
        _words("sr sra dr etc p ex"),
    ),
    "sv": Language(
        _words(
            "alla allt att av blev bli blir då de dem den denna deras dess det detta dig din "
            "dina ditt du där efter ej eller en er era ett från för ha hade han hans har henne "
            "hennes hon honom hur här i icke ingen inom inte jag ju kan kunde man med mellan "
            "men mig min mina mitt mot mycket ni nu när någon något några och om oss på samma "
            "sedan sig sin sina sitta själv skulle som så sådan till under upp ut utan vad var "
            "vara varför varje vars vart vem vi vid vilken än är åt över"
        ),
        "åäöé",
        _words("bl a t ex m m d v s osv kl"),
    ),
    "da": Language(
        _words(
            "ad af alle alt anden at blev blive bliver da de dem den denne der deres det "
            "dette dig din disse dog du efter eller en end er et for fordi fra få før gennem "
            "gør han hans har havde have hende hendes her hos hun hvad hvem hver hvilken hvis "
            "hvor hvordan hvorfor i igen ikke ind ingen intet jeg jer kan kom kunne kun lige "
            "man mange med meget mellem men mere mig min mod må ned noget nogen nogle nok nu "
            "når og også om op os over på samme selv sig sin sine sit skal skulle som så "
            "sådan til ud uden under var ved vi vil ville vor være været"
        ),
        "æøåé",
    ),
    "nb": Language(
        _words(
            "alle alt annen at av ble bli blir både da de dem den denne der deres det dette "
            "din disse du eller en enn er et etter for fordi fra før få gjennom gjør han hans "
            "har hadde ha henne hennes her hos hun hva hvem hver hvilken hvis hvor hvordan "
            "hvorfor i igjen ikke inn ingen jeg kan kom kunne kun man mange med meg meget "
            "mellom men mer min mot mye må ned noe noen nok nå når og også om opp oss over på "
            "samme selv seg sin sine sitt skal skulle som så slik til under ut uten var ved "
            "vi vil ville vår være vært"
        ),
        "æøåéòô",
    ),
    "pl": Language(
        _words(
            "a aby albo ale ani aż bardzo bez bo być był była było były będzie będą chce ci "
            "co czy dla do dwa gdy gdzie go i ich ile im inne ja jak jako je jednak jego jej "
            "jest jeszcze jeśli już każdy kiedy kto która które którego której których który "
            "którzy lub ma mają mi mnie może można na nad nam nas nawet nic nich nie niej nim "
            "o od on ona one oni oraz po pod ponieważ przed przez przy są się sobie swoje "
            "swój ta tak także tam te tego tej ten też to tu tylko tym tych w we więc wiele "
            "wszystko z za ze że"
        ),
        "ąćęłńóśźż",
    ),
    "ca": Language(
        _words(
            "a al als amb aquell aquella aquest aquesta aquests això així abans cada com "
            "contra d de del dels des després doncs dos el ella ells els em en encara entre "
            "era eren es està estan et fa fer fins ha han havia hi i ja l la les li lo los m "
            "mai mateix més meu molt molta moltes molts no nosaltres nostre o on per perquè "
            "però poc pot qual quan què que qui s sempre sense ser seu seva seves seus si "
            "sobre són sota també tan te tenen tot tota totes tots tu té un una uns unes va "
            "van vol"
        ),
        "àçéèíïóòúü",
    ),
}


def language_of(tag: str) -> Language:
    """Return the language of a tag (BCP 47)."""
    return LANGUAGES.get(primary(tag), _NONE)


_SAMPLE: Final = 3000  # words
_SHARE_LEAST: Final = 0.15
"""Of common words; running text has 0.3 and more, a list of names hardly any."""
_DIFFERENT_LEAST: Final = 2  # common words; one alone is a coincidence
_LEAD_LEAST: Final = 1.2  # over the common words of the second language
_FOREIGN_MOST: Final = 0.2
"""The share of letters in words that the language cannot spell."""


def guess_language(words: Iterable[str]) -> str:
    """Return the tag of the language that words are in, or `und`."""
    counts = _count(words)
    total = sum(counts.values())
    hits = sorted(
        (
            (sum(count for word, count in counts.items() if word in known.common), tag)
            for tag, known in LANGUAGES.items()
        ),
        reverse=True,
    )
    (best, tag), (second, _) = hits[:2]
    is_clear = best >= max(1, _SHARE_LEAST * total, _LEAD_LEAST * second)
    return tag if is_clear and _could_be(counts, LANGUAGES[tag]) else UNKNOWN


def _count(words: Iterable[str]) -> Counter[str]:
    """Return the counts of the first words, folded and without numbers."""
    sample = (word for word, _ in zip(words, range(_SAMPLE), strict=False))
    folded = (normalize("NFC", word).casefold().replace("\u2019", "'") for word in sample)
    return Counter(word for word in folded if not word[:1].isdigit())


def _could_be(counts: Counter[str], known: Language) -> bool:
    different = sum(word in known.common for word in counts)
    letters = sum(len(word) * count for word, count in counts.items())
    foreign = sum(
        len(word) * count
        for word, count in counts.items()
        if any(each.isalpha() and not each.isascii() and each not in known.letters for each in word)
    )
    return different >= _DIFFERENT_LEAST and foreign <= _FOREIGN_MOST * letters
