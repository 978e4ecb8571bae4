"""The text that the stand-in for 401.bzip2 compresses: an HTML page of 4 MB.

    bzip2_page.py PAGE

The longest run of 401.bzip2, and the one of the thesis, is `text`, which is an
HTML page. HTML is words of a language between markup that repeats: here the
archive of a mailing list, a table of messages with a quoted line of each.
"""

import sys

from draw import Draw, Words

MESSAGES = 8000


def main():
    draw = Draw(401)
    words = Words(draw, 20000)
    people = [f"{words.word().title()} {words.word().title()}" for _ in range(400)]
    with open(sys.argv[1], "w", encoding="ascii") as page:
        page.write("<html>\n<head><title>Archive</title></head>\n<body>\n<table>\n")
        for number in range(MESSAGES):
            sender = draw.pick(people)
            address = sender.lower().replace(" ", ".")
            day, month = draw.between(1, 28), draw.between(1, 12)
            page.write(
                f'<tr class="message">\n  <td class="number">{number}</td>\n'
                f'  <td class="date">2006-{month:02d}-{day:02d}</td>\n'
                f'  <td class="sender"><a href="mailto:{address}@example.org">{sender}</a></td>\n'
                f'  <td class="subject"><a href="archive/{month:02d}/message{number:05d}.html">'
                f"{words.text(3, 9)}</a></td>\n"
                f'  <td class="quote"><blockquote>{words.text(5, 25)}</blockquote></td>\n</tr>\n'
            )
        page.write("</table>\n</body>\n</html>\n")


main()
