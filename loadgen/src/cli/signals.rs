//! Ctrl-C and SIGTERM: the slot ends, and what was measured so far is printed.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A slot ends at once; somebody who presses twice must not lose its result.
const PATIENCE: Duration = Duration::from_secs(1);

/// Keeps both signals from ending the process. To be called before any thread starts, because
/// threads inherit it.
pub fn block() -> io::Result<libc::sigset_t> {
    let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the set, the others only read or change valid memory.
    let (set, error) = unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGINT);
        libc::sigaddset(set.as_mut_ptr(), libc::SIGTERM);
        let set = set.assume_init();
        (set, libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut()))
    };
    if error == 0 { Ok(set) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// Waits for a signal in a thread of its own, then sets `interrupt`, which the engine sees soon.
/// Where nothing runs that could end by itself (`idle`) the process ends at once, and at a second
/// signal if the first one brings nothing about, such as when the result can't be written.
pub fn watch(
    set: libc::sigset_t,
    interrupt: Arc<AtomicBool>,
    idle: Arc<AtomicBool>,
) -> io::Result<()> {
    thread::Builder::new().name("signals".into()).spawn(move || {
        let mut signal = 0;
        // SAFETY: both pointers are valid for the call.
        unsafe { libc::sigwait(&set, &mut signal) };
        interrupt.store(true, Ordering::SeqCst);
        if idle.load(Ordering::SeqCst) {
            std::process::exit(0);
        }
        thread::sleep(PATIENCE);
        // SAFETY: as above.
        unsafe { libc::sigwait(&set, &mut signal) };
        std::process::exit(128 + signal);
    })?;
    Ok(())
}
