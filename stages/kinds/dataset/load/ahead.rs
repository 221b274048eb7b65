//! A decoder on a separate thread, a few blocks ahead of its reader: unpacking is
//! one long dependency, so that the only way to gain from a second core is to read meanwhile.
//! Knows nothing of formats.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::thread;

/// Bytes of a block: still in the processor's cache when it is read.
const BLOCK: usize = 1 << 18;
/// Blocks that wait to be read, at most.
const AHEAD: usize = 4;

/// Calls `read` with what comes out of the decoder, which works on in the meantime.
pub fn ahead<T>(mut decoder: impl Read + Send, read: impl FnOnce(&mut Blocks) -> T) -> T {
    let (full, ready) = sync_channel(AHEAD);
    let (spent, empty) = channel::<Vec<u8>>();
    let decode = move || {
        loop {
            let mut block = empty.try_recv().unwrap_or_default();
            block.clear();
            block.reserve(BLOCK);
            let read = decoder.by_ref().take(BLOCK as u64).read_to_end(&mut block);
            let last = !matches!(read, Ok(1..));
            // Nobody listens any more once the reader has seen enough, or an error.
            if full.send(read.map(|_| block)).is_err() || last {
                return;
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(decode);
        read(&mut Blocks {
            ready,
            spent,
            block: Vec::new(),
            at: 0,
        })
    })
}

/// What a decoder has given, in its order.
pub struct Blocks {
    ready: Receiver<io::Result<Vec<u8>>>,
    spent: Sender<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.block.len() {
            // After the last block, or an error, there is nothing more to send.
            let Ok(next) = self.ready.recv() else {
                return Ok(0);
            };
            let spent = std::mem::replace(&mut self.block, next?);
            self.at = 0;
            let _ = self.spent.send(spent);
        }
        let rest = &self.block[self.at..];
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yields this many zeros, then an error.
    struct Failing(usize);

    impl Read for Failing {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("broken"));
            }
            let count = self.0.min(buffer.len()).min(1000);
            self.0 -= count;
            buffer[..count].fill(0);
            Ok(count)
        }
    }

    #[test]
    fn what_is_read_is_what_was_decoded() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 17).map(|n| (n % 251) as u8).collect();
        let mut read = Vec::new();
        ahead(&bytes[..], |blocks| blocks.read_to_end(&mut read)).unwrap();
        assert!(read == bytes);
        let none = ahead(&b""[..], |blocks| blocks.read(&mut [0; 9])).unwrap();
        assert_eq!(none, 0);
    }

    #[test]
    fn an_error_comes_after_what_was_good_and_stays_an_end() {
        let mut read = Vec::new();
        ahead(Failing(2 * BLOCK), |blocks| {
            let error = blocks.read_to_end(&mut read).unwrap_err();
            assert_eq!(error.to_string(), "broken");
            assert_eq!(blocks.read(&mut [0; 9]).unwrap(), 0);
        });
        assert_eq!(read.len(), 2 * BLOCK);
    }

    #[test]
    fn a_reader_that_has_seen_enough_does_not_wait_for_the_rest() {
        let first = ahead(io::repeat(7), |blocks| {
            let mut first = [0];
            blocks.read_exact(&mut first).unwrap();
            first[0]
        });
        assert_eq!(first, 7);
    }
}
