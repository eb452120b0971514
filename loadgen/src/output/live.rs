//! A line on the terminal that says how it goes.

use std::io::{self, Write};

use crate::engine::Window;

#[derive(Debug)]
pub struct LiveLine {
    shown: bool,
}

impl LiveLine {
    /// `shown`: standard error is a terminal, and nobody asked for quiet.
    pub fn new(shown: bool) -> Self {
        LiveLine { shown }
    }

    /// Replaces the line by what happened in the window that just ended.
    pub fn show(&mut self, window: &Window) {
        if !self.shown {
            return;
        }
        let rate = window.completed as f64 / window.length_s.max(1e-9);
        let mut err = io::stderr().lock();
        // A terminal that can't be written to is no reason to stop measuring.
        let _ = write!(
            err,
            "\r\x1b[K{:6.1} s  {rate:10.1}/s  p50 {:.0} us  p99 {:.0} us  max {:.0} us  {} failed  \
             client {:.0} %",
            window.at_s + window.length_s,
            window.response_p50_us,
            window.response_p99_us,
            window.response_max_us,
            window.failed,
            window.busiest_thread * 100.0,
        );
        let _ = err.flush();
    }

    pub fn clear(&mut self) {
        if self.shown {
            let _ = write!(io::stderr().lock(), "\r\x1b[K");
        }
    }
}
