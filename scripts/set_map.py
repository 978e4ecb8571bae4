#!/usr/bin/env python3
"""Puts the maps of a study's report side by side, as one picture that stands alone.

    scripts/set_map.py REPORT.html >PICTURE.svg
"""

import html
import re
import sys

GAP = 24
TITLE = 28
LEGEND = 30
# The report's markers of owners (crates/report/src/chart): empty lines, the kernel, programs.
EMPTY, KERNEL = "#C8CDD2", "#4A4F55"
PROGRAMS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#F0E442"]


def maps(report):
    """Caption, width, height and source of each map."""
    figures = re.findall(
        r"<figcaption>([^<]*)</figcaption>\s*(<svg [^>]*aria-label=\"Owners of the sets.*?</svg>)",
        report,
        re.S,
    )
    for caption, svg in figures:
        size = re.search(r'width="(\d+)" height="(\d+)"', svg)
        yield html.unescape(caption), int(size[1]), int(size[2]), svg


def owners(report):
    """Of each program in the legend above the maps, in the order of their colours: its name, and the
    number of the lines over its areas, if there are any."""
    section = report[report.index("Who owns the cache") :]
    legend = section[: section.index("</ul>")]
    chips = re.findall(r'<span class="chip p\d(?: h(\d))?"></span>([^<]*)</li>', legend)
    if len(chips) != legend.count('"chip p'):
        sys.exit("set_map.py: the legend has programs in another form than this script reads")
    return [(html.unescape(name), hatch) for hatch, name in chips]


def text(x, y, size, what, weight="normal"):
    return (
        f'<text x="{x}" y="{y}" font-family="sans-serif" font-size="{size}" font-weight="{weight}" '
        f'fill="#1F2328">{html.escape(what)}</text>'
    )


def compact(svg, number):
    """Without what only the report's page uses, and with names that are this map's own."""
    svg = re.sub(r"<title>.*?</title>", "", svg)
    svg = svg.replace("#hatch", f"#m{number}hatch").replace('id="hatch', f'id="m{number}hatch')
    svg = re.sub(r' class="[a-z]*"| opacity="1"| role="img"| aria-label="[^"]*"', "", svg)
    svg = re.sub(r'(font-size="\d+\.\d)\d+', r"\1", svg)
    return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "").replace("\n", "")


def picture(report):
    """The whole picture."""
    found = list(maps(report))
    if len(found) < 2:
        sys.exit("set_map.py: the report has no two maps; the scenario needs set_map and two policies")
    width = sum(w for _, w, _, _ in found) + GAP * (len(found) - 1)
    height = TITLE + max(h for _, _, h, _ in found) + LEGEND
    names = owners(report)
    label = "Who owns the sets of the last-level cache over time: " + "; ".join(c for c, *_ in found)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{html.escape(label)}">',
        f'<rect width="{width}" height="{height}" fill="#FFFFFF"/>',
    ]
    left = 0
    for number, (caption, map_width, _, svg) in enumerate(found):
        out.append(text(left + 66, 19, 15, caption, "bold"))
        placed = compact(svg, number).replace("<svg ", f'<svg x="{left}" y="{TITLE}" ', 1)
        out.append(placed)
        left += map_width + GAP
    x = 66
    chips = names + [("kernel", ""), ("empty", "")]
    for (name, hatch), color in zip(chips, PROGRAMS[: len(names)] + [KERNEL, EMPTY]):
        for fill in [color] + ([f"url(#m0hatch{hatch})"] if hatch else []):
            out.append(f'<rect x="{x}" y="{height - 22}" width="14" height="14" fill="{fill}"/>')
        out.append(text(x + 20, height - 10, 14, name))
        x += 44 + 9 * len(name)
    return "\n".join(out + ["</svg>", ""])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(picture(file.read()))
