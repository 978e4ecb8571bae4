//! The little of Markdown that the checks read: tables, fenced blocks, links.

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// What follows the backquotes, as in `sh`.
    pub mark: String,
    /// The lines between the fences.
    pub body: Vec<String>,
}

/// The fenced blocks of a document. A block that is never closed ends with it.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(mark) => {
                open = true;
                found.push(Block {
                    line: number + 1,
                    mark: mark.trim().to_owned(),
                    body: Vec::new(),
                });
            }
            None if open => {
                if let Some(block) = found.last_mut() {
                    block.body.push(line.to_owned());
                }
            }
            None => {}
        }
    }
    found
}

/// The rows of the first table whose header has all these columns, each row
/// reduced to them, in the order asked for. `None` if there is no such table.
pub fn table(text: &str, columns: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut lines = text.lines();
    let places = loop {
        let header = cells(lines.next()?);
        let places: Option<Vec<usize>> = columns
            .iter()
            .map(|c| header.iter().position(|h| h == c))
            .collect();
        if let Some(places) = places {
            break places;
        }
    };
    let rows = lines
        .skip(1)
        .map(cells)
        .take_while(|row| !row.is_empty())
        .map(|row| {
            let cell = |at: &usize| row.get(*at).cloned().unwrap_or_default();
            places.iter().map(cell).collect()
        })
        .collect();
    Some(rows)
}

/// The cells of a table line; none if it is not one.
fn cells(line: &str) -> Vec<String> {
    let Some(inner) = line.trim().strip_prefix('|') else {
        return Vec::new();
    };
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|c| c.trim().to_owned()).collect()
}

/// What stands in backquotes.
pub fn code_words(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Targets of `[text](target)` links and of `src="target"` that name a file of
/// the repository: no web address, no place in the same page.
pub fn local_links(text: &str) -> Vec<&str> {
    let targets = |open: &'static str, close: char| {
        text.split(open)
            .skip(1)
            .filter_map(move |rest| rest.split(close).next())
    };
    targets("](", ')')
        .chain(targets("src=\"", '"'))
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}
