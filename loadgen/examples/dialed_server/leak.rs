//! A leak that goes by time.

use std::mem;
use std::thread;
use std::time::{Duration, Instant};

/// How often memory is taken: often enough to look steady.
const EVERY: Duration = Duration::from_millis(100);
/// With the 16 bytes that malloc puts before them they fill whole pages: a page more for each block
/// would make the leak steeper than it is said to be.
const BLOCK_BYTES: usize = (1 << 20) - 16;

/// Takes memory as time goes by, in blocks of which only what is taken is resident.
pub fn go_on(bytes_per_s: f64) {
    let began = Instant::now();
    let (mut taken, mut block) = (0, Vec::new());
    loop {
        thread::sleep(EVERY);
        let due = (bytes_per_s * began.elapsed().as_secs_f64()) as usize;
        while taken < due {
            if block.len() == block.capacity() {
                mem::forget(mem::replace(&mut block, Vec::with_capacity(BLOCK_BYTES)));
            }
            let more = (due - taken).min(block.capacity() - block.len());
            block.resize(block.len() + more, 1_u8);
            taken += more;
        }
    }
}
