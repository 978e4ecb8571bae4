# Bytes for each visitor and page, and the ten visitors with most.
{
    bytes[$1] += $NF
    split($7, part, "/")
    pages[part[2]]++
    if ($9 == 404) lost[$1 " " $7]++
}
END {
    for (name in bytes) if (bytes[name] > best) { best = bytes[name]; who = name }
    print who, best, length(pages), length(lost)
}
