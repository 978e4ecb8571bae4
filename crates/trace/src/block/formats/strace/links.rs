//! Symbolic links that the log shows being made.

use std::collections::HashMap;

/// Most links in the way of one path, as in the kernel.
const MAX_STEPS: u32 = 40;
/// Most links that are known at a time; those behind are not followed.
const MAX_LINKS: usize = 1 << 20;

/// Links by their own paths, with where they lead.
#[derive(Debug, Default)]
pub(super) struct Links(HashMap<Vec<u8>, Vec<u8>>);

impl Links {
    /// `path` leads to `target` from now on.
    pub fn put(&mut self, path: Vec<u8>, target: Vec<u8>) {
        if self.0.len() < MAX_LINKS {
            self.0.insert(path, target);
        }
    }

    /// A path is gone; was it a link?
    pub fn take(&mut self, path: &[u8]) -> Option<Vec<u8>> {
        match self.0.is_empty() {
            true => None,
            false => self.0.remove(path),
        }
    }

    /// Where a path leads: links in its directories are followed, and one at its end if `whole` says so.
    pub fn follow(&self, path: Vec<u8>, whole: bool) -> Vec<u8> {
        if self.0.is_empty() {
            return path;
        }
        let mut path = path;
        for _ in 0..MAX_STEPS {
            let Some(next) = self.step(&path, whole) else {
                break;
            };
            path = next;
        }
        path
    }

    /// The path with its first link replaced.
    fn step(&self, path: &[u8], whole: bool) -> Option<Vec<u8>> {
        let ends = memchr::memchr_iter(b'/', path).filter(|at| *at > 0);
        let ends = ends.chain(whole.then_some(path.len()));
        for end in ends {
            let Some(target) = self.0.get(&path[..end]) else {
                continue;
            };
            let rest = &path[end..];
            if target.starts_with(b"/") {
                return Some(super::calls::tidy(&[&target[..], rest].concat()));
            }
            let directory = memchr::memrchr(b'/', &path[..end]).map_or(0, |at| at + 1);
            let joined = [&path[..directory], &target[..], rest].concat();
            return Some(super::calls::tidy(&joined));
        }
        None
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
            ("here/z", true, "there/z"),
            ("/other", true, "/other"),
        ] {
            let found = links.follow(path.into(), whole);
            assert_eq!(found, to.as_bytes(), "{path}");
        }
        assert_eq!(links.take(b"/current"), Some(b"releases/7".to_vec()));
        assert_eq!(links.follow(b"/current/x".to_vec(), true), b"/current/x");
    }
}
