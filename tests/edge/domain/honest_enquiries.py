"""Honest enquiries in fifteen languages, put together from parts that people write, and spam."""

# ruff: noqa: RUF001  letters of other scripts, on purpose

import random
from collections.abc import Iterator

from edge_api.leads.input import LeadInput

OPENINGS = {
    "en": ("Hello,", "We are a small bakery and need a site.", "Could you call me on Monday?"),
    "de": (
        "Guten Tag,",
        "wir suchen jemanden für unsere Webseite.",
        "Können Sie mich zurückrufen?",
    ),
    "fr": ("Bonjour,", "nous voudrions refaire le site de notre école.", "Quel serait le prix ?"),
    "es": ("Buenos días:", "necesitamos una tienda para nuestros vinos.", "¿Cuánto costaría?"),
    "it": ("Buongiorno,", "vorremmo un sito per il nostro agriturismo.", "Possiamo sentirci?"),
    "pt": ("Olá,", "precisamos de um site para a nossa clínica.", "Qual é o prazo?"),
    "pl": ("Dzień dobry,", "szukamy kogoś do naszej strony.", "Ile to kosztuje?"),
    "tr": ("Merhaba,", "İstanbul'daki dükkânımız için site istiyoruz.", "Fiyatı nedir?"),
    "ru": ("Здравствуйте!", "Нам нужен сайт на WordPress'е для школы.", "Сколько это стоит?"),
    "uk": ("Добрий день!", "Шукаємо розробника для нашого музею.", "Коли можна почати?"),
    "el": ("Καλημέρα,", "θέλουμε μια σελίδα για το ξενοδοχείο μας.", "Πόσο κοστίζει;"),
    "ar": ("مرحبا،", "نحتاج إلى موقع لمكتبتنا الصغيرة.", "كم تكلفة ذلك؟"),
    "he": ("שלום,", "אנחנו מחפשים מישהו שיבנה לנו אתר.", "מה המחיר?"),
    "ja": ("こんにちは。", "古本屋のサイトを作りたいです。", "料金を教えてください。"),
    "zh": ("您好，", "我们想为京都的茶馆做一个网站。", "请问多少钱？"),
}
NAMES = (
    "Ann Lee",
    "İpek Yılmaz",
    "Jürgen Müller",
    "Олена К.",
    "山田太郎",
    "O'Brien & Sons",
    "DJ Max",
)
DETAILS = (
    "Our present site is https://www.bakery.example/de/ and it is slow.",
    "Like these: https://a.example, https://b.example/x?y=1 and https://c.example!",
    "Our budget is 5,000 EUR, 20 % now and 80 % at the end.",
    "It has to cost less than $300 a month.",
    'You wrote: "Nobody shut out, nothing lost". I liked that.',
    "> On Monday you wrote:\n> we can do that for 4.000 €\nThat is fine for us.",
    'Our menu is <div class="menu"><a href="/menu">Menu</a></div> and it breaks on phones.',
    'The script says: <script src="app.js"></script> and then nothing.',
    'if (a < b && c > d) { return x[1] + "="; }',
    "SELECT * FROM posts WHERE id = 7; -- is that safe?",
    "Somebody hacked us: there is a casino page with viagra links on https://shop.example.",
    "Our SEO agency sold us backlinks, and now we are on page 9. Can you help?",
    "We are a licensed pharmacy and want to sell pills for hay fever online.",
    "Our start-up does bitcoin payments for museums, forex is not our business.",
    "PLEASE NO CALLS BEFORE TEN O'CLOCK, WE BAKE AT NIGHT.",
    "Нужен IT-отдел, файлы в PDF-формате и сайт на iPhoneе.",
    "Write me at ann.lee@example.org or +49 (0)30 1234567.",
    "- a shop\n- a blog in two languages\n- a newsletter people can unsubscribe from",
    "I want to buy a site now, not in a year!",
    "Is there a discount for non-profits? Others give 10 % off.",
    "Thank you so much, we love your journal!!!",
)
SIGNATURES = (
    "",
    "\n\n-- \nAnn Lee\nLee & Sons Ltd.\nhttps://www.lee.example\n+44 20 7946 0000",
    "\n\nMit freundlichen Grüßen\nJürgen Müller\nGeschäftsführer",
    "\n\nSent from my iPhone",
    "\n\n🙏🙂",
)
SPAM = (
    "BUY BACKLINKS http://a.example http://b.example http://c.example CLICK NOW!!! casino crypto",
    "Get cheap backlinks and guest posts today. Order now: https://seo.example",
    "First page of Google, guaranteed results! SEO services, buy now https://rank.example",
    "Online casino, slots and betting, 100% bonus, register now http://win.example",
    '<a href="http://x.example">cheap viagra</a> <a href="http://y.example">cialis</a> buy now',
    "[url=http://pills.example]online pharmacy[/url] viagra, limited offer, click here",
    "Earn $5000 a week with crypto and forex. Sign up here: https://coin.example",
    "Bitcoin investment, risk-free, 30% profit daily, join now https://btc.example",
    "We sell web traffic and followers. Special offer, only $19: https://traffic.example",
    "Bulk email lists, bulk SMS. Reply now for a discount: 50 % off http://lists.example",
    "Payday loans, business loans, apply now, no obligation http://loan.example",
    "Казино онлайн, ставки на спорт, жми сюда http://kazino.example",
    "Заработок на криптовалюте, переходи http://k.example http://l.example http://m.example",
    "博彩 贷款 点击 http://bo.example",
    "Replica watches, escorts and dating. Order today http://r.example",
    "Boost your domain authority: link building packages, order here https://da.example",
    "Your site could rank #1. We offer SEO packages, 40 % off, reply today https://s.example",
    "Dating, escorts: click here http://d.example http://e.example http://f.example",
    "Hi, I came across your site and think that we could work together. Let me know.",
    "http://one.example http://two.example http://three.example http://four.example",
)


def enquiries(count: int) -> Iterator[LeadInput]:
    """Yield so many different enquiries, the same each time, all languages alike."""
    chance = random.Random(43)  # noqa: S311  no secret
    languages = list(OPENINGS)
    for number in range(count):
        greeting, want, question = OPENINGS[languages[number % len(languages)]]
        details = chance.sample(DETAILS, chance.randint(1, 4))
        text = f"{greeting}\n\n{' '.join([want, *details, question])}{chance.choice(SIGNATURES)}"
        yield make_lead(text, chance.choice(NAMES))


def make_lead(message: str, name: str = "Best Deals") -> LeadInput:
    """Return a lead with that message."""
    usual = {"name": name, "email": "someone@example.org", "budget_tier": "5k", "message": message}
    return LeadInput.model_validate(usual)
