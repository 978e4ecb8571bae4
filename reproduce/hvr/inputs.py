"""The data that the programs of the HVR reproduction work on.

    inputs.py NAME FILE     writes the input NAME to FILE
    inputs.py               names all inputs

All draws have seeds, and none uses floating point, so that every computer writes the
same bytes; `inputs.sha256` has their sums. What a program does with its input, and why
the input has this size, is said in `programs.toml`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "rainbow"))

from draw import Draw, Words  # noqa: E402  (the directory has to be known first)

RESIDUES = "ACDEFGHIKLMNPQRSTVWY"
BASES = "ACGT"


def mutated(draw, text, alphabet, permille):
    """A copy in which so many letters of a thousand were drawn anew."""
    return "".join(
        draw.pick(alphabet) if draw.below(1000) < permille else letter for letter in text
    )


def chain(draw, alphabet, length):
    return "".join(draw.pick(alphabet) for _ in range(length))


def family(out):
    """An alignment of 40 related proteins of 220 residues, in Stockholm's format."""
    draw = Draw(456)
    first = chain(draw, RESIDUES, 220)
    out.write("# STOCKHOLM 1.0\n")
    for number in range(40):
        out.write(f"member{number:02d}  {mutated(draw, first, RESIDUES, 300)}\n")
    out.write("//\n")


def proteins(out):
    """6,000 proteins, one of 50 from the family, in FASTA."""
    draw = Draw(456)
    first = chain(draw, RESIDUES, 220)
    draw = Draw(4560)
    for number in range(6000):
        text = chain(draw, RESIDUES, draw.between(150, 500))
        if number % 50 == 0:
            text = text[:60] + mutated(draw, first, RESIDUES, 400) + text[60:]
        out.write(f">protein{number}\n{text}\n")


def scene(out):
    """400 spheres, some of glass, over a floor, with two lamps, for a ray tracer (NFF)."""
    draw = Draw(453)
    out.write("v\nfrom 0 -18 6\nat 0 0 1\nup 0 0 1\nangle 45\nhither 1\nresolution 800 600\n")
    out.write("b 0.1 0.2 0.4\nl 10 -15 20\nl -15 -5 12\n")
    out.write("f 0.8 0.8 0.7 0.8 0.2 20 0 0\np 4\n-40 -40 0\n40 -40 0\n40 60 0\n-40 60 0\n")
    for _ in range(400):
        x, y = draw.between(-900, 900), draw.between(-500, 1500)
        size = draw.between(20, 70)
        color = " ".join(f"0.{draw.between(10, 95)}" for _ in range(3))
        glass = draw.pick(["0 0", "0 0", "0.6 1.3"])
        out.write(f"f {color} 0.6 0.4 30 {glass}\n")
        out.write(f"s {cents(x)} {cents(y)} {cents(size)} {cents(size)}\n")


def cents(number):
    """A number of hundredths as a decimal."""
    sign = "-" if number < 0 else ""
    return f"{sign}{abs(number) // 100}.{abs(number) % 100:02d}"


def video(out):
    """40 frames of 352 x 288 points, YUV 4:2:0: a textured ground that moves, and noise."""
    draw = Draw(464)
    width, height = 352, 288
    ground = []
    row = [128] * (2 * width)
    for _ in range(2 * height):
        level = 128
        for x, above in enumerate(row):
            level = (level * 3 + above * 4 + draw.between(16, 235)) // 8
            row[x] = level
        ground.append(bytes(row))
    out.write(b"YUV4MPEG2 W352 H288 F25:1 Ip A1:1 C420jpeg\n")
    for frame in range(40):
        out.write(b"FRAME\n")
        dx, dy = frame * 5, frame * 3
        noise = draw.bits()
        for y in range(height):
            line = bytearray(ground[(y + dy) % (2 * height)][dx : dx + width])
            line[(noise + y * 7) % width] = 255
            out.write(bytes(line))
        for plane in (2, 3):
            for y in range(height // 2):
                line = ground[(plane * y + dy) % (2 * height)]
                out.write(line[dx : dx + width : 2])


def music(out):
    """30 s of two channels of 44,100 samples of 16 bits: eight voices and noise, as WAV."""
    draw = Draw(11)
    rate, seconds = 44100, 30
    frames = rate * seconds
    size = frames * 4
    out.write(b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt \x10\0\0\0\x01\0\x02\0")
    out.write(rate.to_bytes(4, "little") + (rate * 4).to_bytes(4, "little") + b"\x04\0\x10\0")
    out.write(b"data" + size.to_bytes(4, "little"))
    voices = []
    block = bytearray()
    for frame in range(frames):
        if frame % 11025 == 0:
            voices = [(draw.between(80, 3000), draw.between(400, 2500)) for _ in range(8)]
        left = right = 0
        for number, (pitch, volume) in enumerate(voices):
            # A parabola for each half wave: close to a sine, and of whole numbers.
            phase = frame * pitch * 65536 // rate & 0xFFFF
            half = phase & 0x7FFF
            value = half * (0x8000 - half) * volume >> 28
            value = value if phase < 0x8000 else -value
            if number % 2:
                left += value
            else:
                right += value
        hiss = draw.bits()
        left += (hiss & 0xFF) - 128
        right += (hiss >> 8 & 0xFF) - 128
        block += (left & 0xFFFF).to_bytes(2, "little") + (right & 0xFFFF).to_bytes(2, "little")
    out.write(bytes(block))


def unit(out):
    """A C file of 900 functions that call one another, over 60 structures."""
    draw = Draw(403)
    for kind in range(60):
        fields = "".join(f" int f{n};" for n in range(draw.between(3, 12)))
        out.write(f"struct s{kind} {{{fields} struct s{max(kind - 1, 0)} *next; }};\n")
    for number in range(900):
        kind = draw.below(60)
        out.write(f"int g{number}(struct s{kind} *p, int n)\n{{\n    int a = n, b = {number};\n")
        out.write(f"    for (int i = 0; i < n; i++) {{\n        a += p->f{draw.below(3)} * i;\n")
        for _ in range(draw.between(4, 20)):
            sign = draw.pick(["+", "-", "^", "|", "&"])
            out.write(
                f"        if (a {draw.pick(['<', '>', '!='])} {draw.below(1000)}) "
                f"b = (b {sign} p->f{draw.below(3)}) * {draw.between(2, 9)} + i;\n"
            )
        out.write("        p->f0 = b;\n    }\n")
        out.write("    switch (a & 7) {\n")
        for case in range(6):
            out.write(f"    case {case}: b += a / {draw.between(3, 60)}; break;\n")
        out.write("    }\n")
        if number:
            out.write(f"    return a > b ? g{draw.below(number)}((void *)p, a - 1) : b;\n}}\n")
        else:
            out.write("    return a;\n}\n")


def log(out):
    """150,000 lines of a web server's log, with 30,000 visitors and 6,000 pages."""
    draw = Draw(400)
    words = Words(draw, 6000)
    for number in range(150000):
        visitor = draw.below(30000)
        address = f"10.{visitor >> 12 & 255}.{visitor >> 6 & 63}.{visitor & 63}"
        out.write(
            f"{address} - - [{draw.between(1, 28):02d}/Mar/2009:{number % 24:02d}:00:00] "
            f'"GET /{words.word()}/{words.word()}.html HTTP/1.1" '
            f"{draw.pick(['200', '200', '200', '304', '404'])} {draw.between(200, 90000)}\n"
        )


def mail(out):
    """3,000 letters of 60 to 400 words, for a filter."""
    draw = Draw(4001)
    words = Words(draw, 20000)
    for number in range(3000):
        out.write(f"From {words.word()}@example.org\nSubject: {words.text(3, 9)}\n\n")
        for _ in range(draw.between(6, 40)):
            out.write(words.text(10, 10) + "\n")
        out.write("\n")


def document(out):
    """4,000 entries, 1.4 MB of JSON."""
    draw = Draw(77)
    words = Words(draw, 4000)
    entries = []
    for number in range(4000):
        entries.append(
            {
                "number": number,
                "name": words.text(2, 3),
                "tags": [words.word() for _ in range(draw.between(2, 8))],
                "place": {"x": draw.below(10000), "y": draw.below(10000)},
                "text": words.text(10, 30),
            }
        )
    out.write(json.dumps(entries))


def shop(out):
    """Statements for SQLite: two tables in memory, joined and grouped."""
    draw = Draw(31)
    words = Words(draw, 3000)
    out.write("PRAGMA cache_size=-65536;\nCREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price INT);\n")
    out.write("CREATE TABLE sale(item INT, buyer TEXT, n INT);\nBEGIN;\n")
    for number in range(20000):
        out.write(f"INSERT INTO item VALUES({number},'{words.text(1, 3)}',{draw.between(1, 9999)});\n")
    for _ in range(60000):
        out.write(
            f"INSERT INTO sale VALUES({draw.below(20000)},'{words.word()}',{draw.between(1, 9)});\n"
        )
    out.write("COMMIT;\nCREATE INDEX by_item ON sale(item);\nCREATE INDEX by_buyer ON sale(buyer);\n")
    for number in range(200):
        out.write(
            "SELECT buyer, sum(n * price), count(DISTINCT item.id) FROM sale JOIN item ON "
            f"sale.item = item.id WHERE price > {number * 10} GROUP BY buyer ORDER BY 2 DESC LIMIT 5;\n"
        )


def genome(out):
    """3 million bases, a third of them copies of what was before, in FASTA."""
    out.write(">genome\n" + "\n".join(bases()) + "\n")


def bases():
    draw = Draw(17)
    lines = []
    while len(lines) < 50000:
        if lines and draw.below(3) == 0:
            begin = draw.below(len(lines))
            lines += [mutated(draw, line, BASES, 30) for line in lines[begin : begin + 20]]
        else:
            lines += [chain(draw, BASES, 60) for _ in range(20)]
    return lines[:50000]


def reads(out):
    """20,000 reads of 120 bases with errors, in FASTQ."""
    text = "".join(bases())
    draw = Draw(18)
    for number in range(20000):
        begin = draw.below(len(text) - 120)
        read = mutated(draw, text[begin : begin + 120], BASES, 15)
        out.write(f"@read{number}\n{read}\n+\n{'I' * 120}\n")


def clauses(out):
    """A random 3-SAT problem of 20,000 variables and 4 clauses a variable, in DIMACS."""
    draw = Draw(3)
    variables, count = 20000, 80000
    out.write(f"p cnf {variables} {count}\n")
    for _ in range(count):
        chosen = {draw.between(1, variables) for _ in range(3)}
        while len(chosen) < 3:
            chosen.add(draw.between(1, variables))
        out.write(" ".join(str(n if draw.below(2) else -n) for n in sorted(chosen)) + " 0\n")


def samples(out):
    """6,000 points of 60 numbers in two classes that overlap, for a support vector machine."""
    draw = Draw(44)
    for _ in range(6000):
        side = draw.pick([-1, 1])
        values = [draw.between(-500, 500) + side * 40 for _ in range(60)]
        text = " ".join(f"{n + 1}:{'-' if v < 0 else ''}0.{abs(v):03d}" for n, v in enumerate(values))
        out.write(f"{side} {text}\n")


TEXT = {
    "family.sto": family,
    "proteins.fa": proteins,
    "scene.nff": scene,
    "unit.c": unit,
    "access.log": log,
    "letters.txt": mail,
    "document.json": document,
    "shop.sql": shop,
    "genome.fa": genome,
    "reads.fq": reads,
    "clauses.cnf": clauses,
    "samples.svm": samples,
}
BINARY = {"video.y4m": video, "music.wav": music}


def main(arguments):
    if not arguments:
        print("\n".join([*TEXT, *BINARY]))
        return 0
    if len(arguments) != 2 or arguments[0] not in {**TEXT, **BINARY}:
        allowed = ", ".join([*TEXT, *BINARY])
        print(f"inputs.py: {' '.join(arguments)}: allowed: NAME FILE, NAME one of {allowed}", file=sys.stderr)
        return 2
    name, file = arguments
    if name in BINARY:
        with open(file, "wb") as out:
            BINARY[name](out)
    else:
        with open(file, "w", encoding="ascii", newline="\n") as out:
            TEXT[name](out)
    return 0


sys.exit(main(sys.argv[1:]))
