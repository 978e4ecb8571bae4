"""What the stand-in for 483.xalancbmk transforms: a document and a stylesheet.

    xalan_input.py DOCUMENT STYLESHEET

The document is a warehouse: items, and orders that refer to items by number. The
stylesheet makes an HTML page of the first 200 orders and looks up each line's item
without a key: a walk over the whole tree in memory, again and again, as 483.xalancbmk
walks that of its document. A walk takes some 7 million references, with `//item` it
would take several times that. (Debian's Xalan has no `format-number()`.)
"""

import sys

from draw import Draw, Words

ITEMS = 4000
ORDERS = 3000

STYLESHEET = """<?xml version="1.0"?>
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:output method="html" indent="yes"/>
<xsl:template match="/warehouse">
  <html><body>
    <xsl:for-each select="orders/order[position() &lt;= 200]">
      <xsl:sort select="customer"/>
      <xsl:sort select="date" order="descending"/>
      <h2><xsl:value-of select="customer"/></h2>
      <p><xsl:value-of select="date"/>: <xsl:number value="position()" format="1."/></p>
      <table><xsl:apply-templates select="line"/></table>
    </xsl:for-each>
  </body></html>
</xsl:template>
<xsl:template match="line">
  <xsl:variable name="number" select="string(@item)"/>
  <xsl:variable name="item" select="/descendant::item[@number = $number]"/>
  <tr>
    <td><xsl:value-of select="$item/name"/></td>
    <td><xsl:value-of select="translate($item/place, 'abcdefgh', 'ABCDEFGH')"/></td>
    <td><xsl:value-of select="round(@count * $item/price * 100) div 100"/></td>
    <td><xsl:apply-templates select="$item/note"/></td>
    <xsl:choose>
      <xsl:when test="@count &gt; $item/stock"><td>to be ordered</td></xsl:when>
      <xsl:otherwise><td><xsl:value-of select="$item/stock - @count"/> left</td></xsl:otherwise>
    </xsl:choose>
  </tr>
</xsl:template>
<xsl:template match="note"><i><xsl:value-of select="normalize-space(.)"/></i></xsl:template>
</xsl:stylesheet>
"""


def main():
    draw = Draw(483)
    words = Words(draw, 5000)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write('<?xml version="1.0"?>\n<warehouse>\n<items>\n')
        for number in range(ITEMS):
            place = f"{draw.pick('abcdefgh')}{draw.between(1, 60)}"
            out.write(
                f'<item number="{number}"><name>{words.text(1, 3)}</name>'
                f"<place>{place}</place><price>{draw.between(100, 99999) / 100:.2f}</price>"
                f"<stock>{draw.below(50)}</stock><note>{words.text(2, 8)}</note></item>\n"
            )
        out.write("</items>\n<orders>\n")
        for number in range(ORDERS):
            date = f"2006-{draw.between(1, 12):02d}-{draw.between(1, 28):02d}"
            out.write(f'<order number="{number}"><customer>{words.text(2, 2)}</customer><date>{date}</date>')
            for _ in range(draw.between(1, 6)):
                out.write(f'<line item="{draw.below(ITEMS)}" count="{draw.between(1, 9)}"/>')
            out.write("</order>\n")
        out.write("</orders>\n</warehouse>\n")
    with open(sys.argv[2], "w", encoding="ascii") as out:
        out.write(STYLESHEET)


main()
