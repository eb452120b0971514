//! Ctrl-C, SIGTERM and a terminal that is closed: the slot ends, and what was measured so far is printed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cli::units::CpuList;
use crate::engine::Engine;

/// A slot ends at once; somebody who presses twice must not lose its result.
const PATIENCE: Duration = Duration::from_secs(1);

/// Starts the engine, with a thread on each of the CPUs where some are given, and lets signals end
/// its slots; also gives whether one has come.
pub fn engine(
    cpus: Option<&CpuList>,
    threads: u16,
    idle: &Arc<AtomicBool>,
) -> io::Result<(Engine, Arc<AtomicBool>)> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let engine = Engine::start(cpus.map(|list| list.0.as_slice()), threads.into(), &interrupt)?;
    watch(Arc::clone(&interrupt), Arc::clone(idle))?;
    Ok((engine, interrupt))
}

/// Waits for a signal in a thread of its own, then sets `interrupt`, which the engine sees soon.
/// Where nothing runs that could end by itself (`idle`) the process ends at once, and at a second
/// signal if the first one brings nothing about, such as when the result can't be written.
fn watch(interrupt: Arc<AtomicBool>, idle: Arc<AtomicBool>) -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    thread::Builder::new().name("signals".into()).spawn(move || {
        signals.forever().next();
        interrupt.store(true, Ordering::SeqCst);
        if idle.load(Ordering::SeqCst) {
            std::process::exit(0);
        }
        thread::sleep(PATIENCE);
        if let Some(signal) = signals.forever().next() {
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}
