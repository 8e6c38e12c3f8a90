"""The prompts that are recorded: every script and kind of symbol, short and long."""

TINY_TEXTS = [
    "the",
    "the quick brown fox jumps over the lazy dog, and 3 others: 1234567.",
    "<|im_start|>user\nCafé — naïve 😀\t\tx = 42;\r\n\n<|im_end|>\n",
]

LONG_STORY = """The lighthouse keeper counted the steps as he climbed, though he had climbed them every evening for
thirty-one years and knew that there were two hundred and seven. The lamp had been electric since
before he came, and it would have lit itself, and the company on the mainland had written to say so.
He went up all the same. From the gallery he could see the boats come round the headland, each with
its own small light, and he could tell from the order in which they came what kind of day it had been.
When Petra's boat came first, the herring had been near. When it came last, she had gone out past the
shelf and would have stories. Tonight it did not come at all.

He waited until the tea in his flask was cold. The wind had gone round to the north-west, which was
nothing by itself, but the swell was coming from the south, and where the two met, a mile off the
point, the water stood up in short steep heaps that no chart showed. He had once seen a coaster lose
its deck cargo there on a clear afternoon. He took down the telephone, which was older than the lamp,
and rang the harbour.

"She said that she would try the far bank," the harbour master told him. "She had fuel for it. I would
not worry before ten."

"I am not worrying," said the keeper. "I am asking."

At half past nine he saw it: not a light but the absence of one, a place where the line of foam broke
and closed again. He swung the old signal lamp, the hand-worked one that nobody had thought to remove,
and began to send the only word that he was sure she could read: here, here, here. After a long while
something answered, low on the water, so faint that he thought at first that it was the reflection of
his own lamp. Then it came again, and he understood what it was saying. The engine was gone, she was
drifting on to the point, and there were two people aboard.

He rang the harbour a second time, and this time he did not ask. Then he went down the two hundred and
seven steps faster than he had done in twenty years, and dragged the skiff out of its shed, and only
when the first wave came over the bow did it occur to him to wonder who the second person"""

PROMPTS = [
    "a",
    " ",
    "\n\n\n\t  \n x",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка — ёжик №5.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. Τι ώρα είναι;",
    "نص حكيم له سر قاطع وذو شأن عظيم ١٢٣٤٥، שלום עולם: דג סקרן שט בים",
    "いろはにほへと ちりぬるを。東京タワーの高さは３３３メートルです。키스의 고유조건은 입술끼리 만나야 한다",
    "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。「請問」這是繁體字嗎？",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। ಕನ್ನಡ தமிழ் เป็นมนุษย์สุดประเสริฐ ខ្មែរ ქართული հայերեն አማርኛ",
    "👨‍👩‍👧‍👦 👍🏽 🇩🇪🇯🇵 é = é? ﬁ ½ ² ∑∫∂√ ≤≥≠ ←↑→↓ ■□▲ ♠♣♥♦ ☃ ﷽ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 \u200b\u00a0\u2028x",
    "#include <stdio.h>\n\nint main(void) {\n\tfor (int i = 0; i < 10; ++i) {\n\t\tprintf(\"%d\\n\", i * i);\n"
    "\t}\n\treturn 0;\n}\n\n// The program above prints",
    '{"name": "Ada", "born": 1815, "tags": ["math", "engine"], "notes": null, "ok": true,\n "next": {"name":',
    "SELECT c.name, COUNT(*) AS n FROM orders o JOIN customers c ON c.id = o.customer_id WHERE o.total >= 99.95 "
    "GROUP BY c.name HAVING COUNT(*) > 3 ORDER BY n DESC;\n-- This query",
    "!!!!!!!!????....,,,,;;;;::::'''''\"\"\"\"`````((((]]]]{{{{>>>>|||\\\\\\///@@@###$$$%%%^^^&&&***~~~___+++===",
    "1+1=2, 12+34=46, 123+456=579, 1234+5678=6912, 3.14159265358979, 1e-9, 0xDEADBEEF, 2024-02-29T23:59:59Z, "
    "192.0.2.1, +49 (0)30 1234-5678, $1,234,567.89, 50 %, 7/8 =",
    "I'm sure that they'll say WE'VE done it, he'd've gone, y'all'RE late; don'T. O'Neill's 'quoted' word",
    "<|im_start|>system\nYou are a terse poet.<|im_end|>\n<|im_start|>user\nWrite two lines about rain."
    "<|im_end|>\n<|im_start|>assistant\n",
    "The pros and cons of remote work can be summarised as follows.\n\n| Aspect | Pro | Con |\n|---|---|---|\n"
    "| Time | No commute | Longer days |\n| Focus | Quiet rooms | Lonely weeks |\n|",
    "word " * 150,
    LONG_STORY,
]
