//! How it goes, on the terminal: some lines that are drawn again when a window is over.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use rustix::termios::tcgetwinsize;

use super::words::{thousands, time};
use crate::engine::Progress;

/// Windows that a sparkline goes back.
const MOST_BARS: usize = 40;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const USUAL_COLUMNS: usize = 80;

#[derive(Debug, Default)]
pub struct LiveView {
    shown: bool,
    /// Of the windows so far, the last ones: valid responses per second, and p99 in microseconds.
    throughputs: VecDeque<f64>,
    p99s_us: VecDeque<f64>,
    /// Lines on the terminal.
    drawn: usize,
}

impl LiveView {
    /// Shown where standard error is a terminal that can draw, unless nobody wants it.
    pub fn new(quiet: bool) -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
        LiveView { shown: !quiet && !is_dumb && io::stderr().is_terminal(), ..LiveView::default() }
    }

    /// Draws how it went in the window that just ended.
    pub fn show(&mut self, progress: &Progress) {
        if !self.shown {
            return;
        }
        let window = progress.window;
        keep(&mut self.throughputs, window.completed as f64 / window.length_s.max(1e-9));
        keep(&mut self.p99s_us, window.latency_p99_us);
        // Some terminals don't know how wide they are.
        let known = tcgetwinsize(io::stderr()).ok().filter(|size| size.ws_col > 0);
        let columns = known.map_or(USUAL_COLUMNS, |size| size.ws_col.into());
        let lines = self.lines(progress);
        let mut text = self.rubbed_out();
        for line in &lines {
            // A line that is wrapped would be two.
            text.extend(line.chars().take(columns.saturating_sub(1)));
            text.push('\n');
        }
        self.drawn = lines.len();
        draw(&text);
    }

    /// Leaves the terminal as it was.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            draw(&self.rubbed_out());
            self.drawn = 0;
        }
    }

    /// What moves to where the lines begin, and clears from there.
    fn rubbed_out(&self) -> String {
        if self.drawn > 0 { format!("\x1b[{}A\r\x1b[J", self.drawn) } else { String::new() }
    }

    fn lines(&self, progress: &Progress) -> [String; 3] {
        let Progress { window, so_far, .. } = progress;
        let phase = if window.ramp_up { "ramp-up" } else { "load" };
        let throughput = thousands(self.throughputs.back().copied().unwrap_or(0.0));
        let mut client = format!("client {:.0}% busy", window.busiest_thread * 100.0);
        if window.send_delay_p99_us > 0.0 {
            let _ = write!(client, ", send delay p99 {}", time(window.send_delay_p99_us));
        }
        if window.client_limited {
            client.push_str(", saturated");
        }
        [
            format!(
                "{phase:<8}{:>8.1} s   {throughput:>10}/s    {}",
                window.at_s + window.length_s,
                sparkline(&self.throughputs)
            ),
            format!(
                "latency  p50 {:<8}  p99 {:<8}  max {:<8}  {}",
                time(window.latency_p50_us),
                time(window.latency_p99_us),
                time(window.latency_max_us),
                sparkline(&self.p99s_us)
            ),
            format!("failures {}   {client}", thousands(so_far.seen.failures.total() as f64)),
        ]
    }
}

fn keep(values: &mut VecDeque<f64>, value: f64) {
    if values.len() == MOST_BARS {
        values.pop_front();
    }
    values.push_back(value);
}

/// A bar for each value, from nothing to the largest.
fn sparkline(values: &VecDeque<f64>) -> String {
    let largest = values.iter().copied().fold(0.0, f64::max);
    let bar = |value: &f64| {
        let height = if largest > 0.0 { value / largest } else { 0.0 };
        BARS[((height * BARS.len() as f64) as usize).min(BARS.len() - 1)]
    };
    values.iter().map(bar).collect()
}

/// A terminal that can't be written to is no reason to stop measuring.
fn draw(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_reach_from_nothing_to_the_largest() {
        assert_eq!(sparkline(&VecDeque::from([0.0, 50.0, 100.0, 12.4])), "▁▅█▁");
        assert_eq!(sparkline(&VecDeque::from([0.0, 0.0])), "▁▁");
        let mut values = VecDeque::new();
        (0..100).for_each(|value| keep(&mut values, f64::from(value)));
        assert_eq!((values.len(), values[0]), (MOST_BARS, 60.0));
    }
}
