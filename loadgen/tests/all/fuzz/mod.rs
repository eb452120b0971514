//! Fuzzing of bounded length: what others send or write is damaged at random, and no parser may
//! panic, hang, or make something else of it than it is.
//!
//! `tests/fuzz/TARGET/` has what the damaging begins with; each file is tried as it is, too. More
//! runs: `LOADGEN_FUZZ_RUNS=1000000 LOADGEN_FUZZ_SEED=7 cargo test fuzz`. What fails is printed, and
//! goes into a file there when it is mended.

mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fastrand::Rng;

/// A parser, and what its input has in it.
struct Target {
    name: &'static str,
    /// Runs in the usual tests: some tenths of a second.
    runs: u64,
    /// What is put in at random places.
    words: &'static [&'static [u8]],
    run: fn(&[u8]),
}

fn fuzz(target: &Target) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(target.name);
    let mut files: Vec<_> =
        fs::read_dir(&folder).expect("a corpus").map(|it| it.expect("a file").path()).collect();
    files.sort();
    let corpus: Vec<Vec<u8>> = files.iter().map(|it| fs::read(it).expect("a file")).collect();
    corpus.iter().for_each(|bytes| tried(target, bytes));
    let mut rng = Rng::with_seed(from_environment("LOADGEN_FUZZ_SEED").unwrap_or(2026));
    for _ in 0..from_environment("LOADGEN_FUZZ_RUNS").unwrap_or(target.runs) {
        tried(target, &damaged(&corpus, target.words, &mut rng));
    }
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

fn tried(target: &Target, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(bytes))).is_err() {
        panic!("{}: {}", target.name, bytes.escape_ascii());
    }
}

fn damaged(corpus: &[Vec<u8>], words: &[&[u8]], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = rng.choice(corpus).expect("a corpus").clone();
    for _ in 0..rng.usize(1..6) {
        let at = rng.usize(..=bytes.len());
        match rng.u8(..6) {
            0 if at < bytes.len() => bytes[at] = rng.u8(..),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.truncate(at),
            3 => {
                // Something that is there already, once more.
                let from = rng.usize(..=at);
                let again = bytes[from..at].to_vec();
                drop(bytes.splice(from..from, again));
            }
            4 => {
                let other = rng.choice(corpus).expect("a corpus");
                let rest = other[rng.usize(..=other.len())..].to_vec();
                drop(bytes.splice(at.., rest));
            }
            _ => {
                let word = rng.choice(words).expect("a word");
                drop(bytes.splice(at..at, word.iter().copied()));
            }
        }
    }
    bytes
}
