# A filter of letters: words that were seen in few letters, in letters of few senders.
use strict;
my (%seen, %from, $sender);
while (<>) {
    if (/^From (\S+)@/) { $sender = $1; next; }
    s/\b(\w+)ing\b/$1/g;
    for my $word (/\b([a-z]{3,})\b/gi) {
        my $key = lc $word;
        $seen{$key}++;
        $from{$key}{$sender}++ if length($key) > 4;
    }
}
for my $key (sort { $seen{$a} <=> $seen{$b} || $a cmp $b } keys %seen) {
    my $n = keys %{ $from{$key} || {} };
    print "$key $seen{$key} $n\n" if $n && $seen{$key} / $n > 1.01;
}
