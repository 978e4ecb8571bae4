//! A long row of marks that answers "how many are set after this one?" fast.

/// Marks in a word.
const WORD: usize = 64;
/// Words in a line, whose marks are counted together: one cache line.
const LINE: usize = 8;
/// Lines in a block, and blocks in a range.
const FAN: usize = 64;

/// Marks with counts at three levels: 512, 32 Ki and 2 Mi marks. A change costs four
/// additions; a count reads at most 7 words, 63 line counts, 63 block counts and all
/// later range counts, each a short sum over consecutive memory. For up to some
/// hundred million marks that beats a tree, whose every level is a cache miss.
pub(crate) struct Marks {
    words: Vec<u64>,
    lines: Vec<u16>,
    blocks: Vec<u32>,
    ranges: Vec<u32>,
}

impl Marks {
    /// Room for at least `marks` marks, none of them set.
    pub(crate) fn new(marks: usize) -> Self {
        let lines = marks.div_ceil(WORD * LINE).next_multiple_of(FAN * FAN);
        Self {
            words: vec![0; lines * LINE],
            lines: vec![0; lines],
            blocks: vec![0; lines / FAN],
            ranges: vec![0; lines / FAN / FAN],
        }
    }

    /// Marks that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.words.len() * WORD
    }

    /// Sets a mark that is not set.
    #[inline]
    pub(crate) fn set(&mut self, at: usize) {
        let word = at / WORD;
        debug_assert_eq!(self.words[word] >> (at % WORD) & 1, 0);
        self.words[word] |= 1 << (at % WORD);
        let line = word / LINE;
        self.lines[line] += 1;
        self.blocks[line / FAN] += 1;
        self.ranges[line / FAN / FAN] += 1;
    }

    /// Clears a mark that is set.
    #[inline]
    pub(crate) fn clear(&mut self, at: usize) {
        let word = at / WORD;
        debug_assert_eq!(self.words[word] >> (at % WORD) & 1, 1);
        self.words[word] &= !(1 << (at % WORD));
        let line = word / LINE;
        self.lines[line] -= 1;
        self.blocks[line / FAN] -= 1;
        self.ranges[line / FAN / FAN] -= 1;
    }

    /// Set marks after `at`.
    #[inline]
    pub(crate) fn after(&self, at: usize) -> usize {
        let word = at / WORD;
        // In two steps, since a shift by 64 is none.
        let mut count = (self.words[word] >> (at % WORD) >> 1).count_ones() as usize;
        let line = word / LINE;
        for word in &self.words[word + 1..(line + 1) * LINE] {
            count += word.count_ones() as usize;
        }
        let block = line / FAN;
        let lines = &self.lines[line + 1..(block + 1) * FAN];
        count += lines.iter().map(|&n| u32::from(n)).sum::<u32>() as usize;
        let range = block / FAN;
        count += self.blocks[block + 1..(range + 1) * FAN]
            .iter()
            .sum::<u32>() as usize;
        let ranges = &self.ranges[range + 1..];
        count + ranges.iter().map(|&n| n as usize).sum::<usize>()
    }

    /// For each word, the set marks in the words before it.
    pub(crate) fn ranks(&self) -> Vec<u32> {
        let mut before = 0;
        let rank = |word: &u64| {
            let rank = before;
            before += word.count_ones();
            rank
        };
        self.words.iter().map(rank).collect()
    }

    /// Set marks before `at`, given [`ranks`](Self::ranks).
    #[inline]
    pub(crate) fn rank(&self, ranks: &[u32], at: usize) -> u32 {
        let below = (1_u64 << (at % WORD)) - 1;
        ranks[at / WORD] + (self.words[at / WORD] & below).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_counting_one_by_one() {
        let mut marks = Marks::new(3 * WORD * LINE * FAN * FAN / 2);
        let room = marks.room();
        let mut truth = vec![false; room];
        let mut state = 7_u64;
        let edges = [0, 63, 64, 511, 512, 32_767, 32_768, (1 << 21) - 1, 1 << 21];
        for step in 0..3_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = match step % 3 {
                0 => edges[(state >> 33) as usize % edges.len()],
                _ => (state >> 20) as usize % room,
            };
            match truth[at] {
                true => marks.clear(at),
                false => marks.set(at),
            }
            truth[at] = !truth[at];
        }
        let ranks = marks.ranks();
        let mut after = 0;
        let all = truth.iter().filter(|&&set| set).count();
        for at in (0..room).rev() {
            if truth[at] || at % 997 == 0 || edges.contains(&at) {
                assert_eq!(marks.after(at), after, "after {at}");
                let before = all - after - usize::from(truth[at]);
                assert_eq!(marks.rank(&ranks, at) as usize, before, "before {at}");
            }
            after += usize::from(truth[at]);
        }
    }
}
