//! Symbolic links that the log shows being made.

use std::collections::HashMap;

use super::text::tidy;

/// Most links in the way of one path, as in the kernel.
const MAX_STEPS: u32 = 40;
/// Longest path that Linux takes (`PATH_MAX`); what is longer in a log leads nowhere.
const MAX_PATH: usize = 4096;
/// Most links that are known at a time; those behind are not followed.
const MAX_LINKS: usize = 1 << 20;

/// Links by their own paths, with where they lead.
#[derive(Debug, Default)]
pub(super) struct Links(HashMap<Vec<u8>, Vec<u8>>);

impl Links {
    /// `path` leads to `target` from now on.
    pub fn put(&mut self, path: Vec<u8>, target: Vec<u8>) {
        if self.0.len() < MAX_LINKS && target.len() <= MAX_PATH {
            self.0.insert(path, target);
        }
    }

    /// A path is gone; was it a link?
    pub fn take(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        if self.0.is_empty() {
            None
        } else {
            self.0.remove(path)
        }
    }

    /// Where a path leads: links in its directories are followed, and one at its end if `whole` says so. What
    /// stands behind `..` lies above where a link before it leads.
    pub fn follow(&self, path: &[u8], whole: bool) -> Vec<u8> {
        if self.0.is_empty() || path.len() > MAX_PATH {
            return tidy(path);
        }
        let mut found: Vec<u8> = Vec::new();
        if path.starts_with(b"/") {
            found.push(b'/');
        }
        // What is left to walk, the next part last.
        let mut left: Vec<&[u8]> = path.split(|b| *b == b'/').rev().collect();
        let mut steps = 0;
        while let Some(part) = left.pop() {
            if part.is_empty() {
                continue;
            }
            found = tidy(&[&found[..], b"/", part].concat()[usize::from(found.is_empty())..]);
            let ends = left.iter().all(|part| part.is_empty());
            let target = self.0.get(&found).filter(|_| whole || !ends);
            let Some(target) = target.filter(|_| steps < MAX_STEPS) else {
                continue;
            };
            steps += 1;
            let directory = memchr::memrchr(b'/', &found).unwrap_or(0);
            found.truncate(directory);
            if target.starts_with(b"/") || found.is_empty() && path.starts_with(b"/") {
                found = vec![b'/'];
            }
            left.extend(target.split(|b| *b == b'/').rev());
        }
        tidy(&found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_on_until_there_are_none() {
        let mut links = Links::default();
        for (path, target) in [
            ("/current", "releases/7"),
            ("/releases/7", "/srv/r7"),
            ("/srv/r7/data", "../shared"),
            ("/loop", "loop"),
            ("here", "there"),
        ] {
            links.put(path.into(), target.into());
        }
        for (path, whole, to) in [
            ("/current/x", true, "/srv/r7/x"),
            ("/current", false, "/current"),
            ("/current", true, "/srv/r7"),
            ("/current/data/y", true, "/srv/shared/y"),
            ("/current/data", false, "/srv/r7/data"),
            ("/loop", true, "/loop"),
            ("/current/../y", true, "/srv/y"),
            ("/current/data/../../y", true, "/y"),
            ("/a/../b", true, "/b"),
            ("here/z", true, "there/z"),
            ("/other", true, "/other"),
        ] {
            let found = links.follow(path.as_bytes(), whole);
            assert_eq!(found, to.as_bytes(), "{path}");
        }
        // A log may hold any text for a path.
        let long = [&b"/current"[..], &b"/x".repeat(400_000)].concat();
        assert_eq!(links.follow(&long, true), long);
        assert_eq!(links.take(b"/current"), Some(b"releases/7".to_vec()));
        assert_eq!(links.follow(b"/current/x", true), b"/current/x");
    }
}
