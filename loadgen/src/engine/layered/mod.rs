//! The part of the engine for what lies in layers: TLS and HTTP/2.
//!
//! It is built apart from the plain path, which it costs nothing. Each thread runs its lanes as
//! tasks of a runtime of its own. Schedule, books, windows and results are those of the plain path.

mod ahead;
mod alarm;
mod books;
mod connect;
mod dial;
mod door;
mod http1;
mod http2;
mod lane;
mod origin;
mod slot;
mod wire;

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

pub use origin::{Layers, Origin};

use super::worker::Job;
use alarm::Alarm;
use door::Gate;
use slot::{Interrupted, Slot};

/// One thread's runtime, and its connections to every origin that was ever asked.
#[derive(Debug)]
pub struct Layered {
    runtime: LocalRuntime,
    gates: HashMap<Origin, Rc<Gate>>,
    waker: AsyncFd<Arc<OwnedFd>>,
}

impl Layered {
    /// `waker` is written to when a slot is to end early.
    pub fn new(waker: Arc<OwnedFd>) -> io::Result<Layered> {
        let runtime =
            Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
        let waker = {
            let _inside = runtime.enter();
            // SAFETY: the waker is shared with what it is registered in, so it stays open.
            unsafe { AsyncFd::register_with_interest(waker, Interest::READABLE) }?
        };
        Ok(Layered { runtime, gates: HashMap::new(), waker })
    }

    pub fn run(&mut self, job: Job, layers: &Layers, interrupt: &AtomicBool) -> io::Result<()> {
        let gates: Vec<Rc<Gate>> = layers
            .origins
            .iter()
            .map(|origin| {
                let gate = || Rc::new(Gate::new(origin, layers.tls.as_ref()));
                Rc::clone(self.gates.entry(origin.clone()).or_insert_with(gate))
            })
            .collect();
        let interrupted = Interrupted { waker: &self.waker, flag: interrupt };
        let reuse = job.plan.requests_per_connection == u32::MAX;
        self.runtime.block_on(async {
            // Lets the runtime see what came since the last slot.
            tokio::time::sleep(Duration::from_millis(1)).await;
            for gate in &gates {
                gate.look_after_doors(reuse).await;
            }
            let alarms = (Alarm::new(), Alarm::new());
            let (Ok(turn), Ok(alarm)) = alarms else {
                // The others would wait for ever.
                job.start.together();
                return Err(io::Error::other("no timer can be made"));
            };
            let slot = Rc::new(Slot::new(job.plan, job.part, gates, turn));
            slot.open_ahead(&interrupted).await;
            let start_ns = job.start.together();
            slot.run(start_ns, &alarm, &interrupted, &job.reports).await;
            Ok(())
        })
    }
}
