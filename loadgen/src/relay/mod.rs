//! A cable with a delay and with losses: what comes in at one network interface leaves at another
//! some time later. For kernels without netem.

mod line;
mod port;

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::set_current_timer_slack;

use self::line::Line;
use self::port::Port;
use crate::engine::clock::{now_ns, timespec};

/// What happens to each packet on its way, in either direction.
#[derive(Debug, Clone, Copy)]
pub struct Cable {
    pub delay_ns: u64,
    /// Share of packets that get lost, 0 to 1.
    pub loss: f64,
}

/// Packets looked at on one side before the other side's turn.
const BATCH: usize = 64;

/// Both ends of a cable, ready to carry.
#[derive(Debug)]
pub struct Relay {
    ports: [Port; 2],
    /// `lines[n]` begins at `ports[n]`.
    lines: [Line; 2],
    buffer: Vec<u8>,
}

impl Relay {
    /// Takes hold of two interfaces of this network namespace.
    pub fn between(first: &str, second: &str, cable: Cable) -> io::Result<Relay> {
        Ok(Relay {
            ports: [Port::open(first)?, Port::open(second)?],
            lines: [Line::new(cable), Line::new(cable)],
            buffer: vec![0; port::LARGEST_BYTES],
        })
    }

    /// Carries packets until an interface goes away.
    pub fn run(mut self) -> io::Result<()> {
        // It only makes the delay more exact, so failing is no error.
        let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
        loop {
            self.wait()?;
            for from in 0..2 {
                self.take_in(from)?;
                self.let_out(from)?;
            }
        }
    }

    fn wait(&self) -> io::Result<()> {
        let next_ns = self.lines.iter().filter_map(Line::next_due_ns).min();
        let timeout = next_ns.map(|due_ns| timespec(due_ns.saturating_sub(now_ns())));
        let mut ends = self.ports.each_ref().map(|port| PollFd::new(port, PollFlags::IN));
        match poll(&mut ends, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn take_in(&mut self, from: usize) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(bytes) = self.ports[from].receive(&mut self.buffer)? else { break };
            self.lines[from].put(&self.buffer[..bytes], now_ns());
        }
        Ok(())
    }

    fn let_out(&mut self, from: usize) -> io::Result<()> {
        while let Some(packet) = self.lines[from].take(now_ns()) {
            self.ports[1 - from].send(&packet)?;
        }
        Ok(())
    }
}
