//! A plain list buddy without colours: the yardstick. Orders 0 to 10, one
//! doubly linked list per order, two `u32` links and one state byte per frame.

/// End of a list.
const NIL: u32 = u32::MAX;
/// State of a frame that starts no block.
const INNER: u8 = 0;
const FREE: u8 = 0x40;
const GRANTED: u8 = 0x80;

/// The allocator.
pub struct Plain {
    links: Vec<[u32; 2]>,
    state: Vec<u8>,
    heads: [u32; 11],
}

impl Plain {
    /// All frames free; `frames` is a multiple of 1024.
    pub fn new(frames: u32) -> Self {
        let mut plain = Self {
            links: vec![[NIL; 2]; frames as usize],
            state: vec![INNER; frames as usize],
            heads: [NIL; 11],
        };
        for at in (0..frames).step_by(1024).rev() {
            plain.push(at, 10);
        }
        plain
    }

    #[inline]
    fn push(&mut self, at: u32, order: u8) {
        let head = self.heads[usize::from(order)];
        self.links[at as usize] = [head, NIL];
        if head != NIL {
            self.links[head as usize][1] = at;
        }
        self.heads[usize::from(order)] = at;
        self.state[at as usize] = FREE | order;
    }

    #[inline]
    fn unlink(&mut self, at: u32, order: u8) {
        let [next, prev] = self.links[at as usize];
        match prev {
            NIL => self.heads[usize::from(order)] = next,
            p => self.links[p as usize][0] = next,
        }
        if next != NIL {
            self.links[next as usize][1] = prev;
        }
    }

    /// A block of an order.
    #[inline]
    pub fn alloc(&mut self, order: u8) -> Option<u32> {
        let from = (order..=10).find(|o| self.heads[usize::from(*o)] != NIL)?;
        let at = self.heads[usize::from(from)];
        self.unlink(at, from);
        for o in (order..from).rev() {
            self.push(at + (1 << o), o);
        }
        self.state[at as usize] = GRANTED | order;
        Some(at)
    }

    /// Takes a block back; false if it is not granted with that order.
    #[inline]
    pub fn free(&mut self, at: u32, order: u8) -> bool {
        if self.state.get(at as usize) != Some(&(GRANTED | order)) {
            return false;
        }
        let (mut at, mut order) = (at, order);
        while order < 10 {
            let buddy = at ^ 1 << order;
            if self.state.get(buddy as usize) != Some(&(FREE | order)) {
                break;
            }
            self.unlink(buddy, order);
            self.state[at.max(buddy) as usize] = INNER;
            at = at.min(buddy);
            order += 1;
        }
        self.push(at, order);
        true
    }
}
