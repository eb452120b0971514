//! Who follows a run: the terminal, and files that grow with it.

use super::files::{MetricsFile, RequestLogFile};
use crate::cli::threshold::StopLimit;
use crate::engine::{Logged, Progress, Watcher};
use crate::output::live::LiveView;

pub struct Watch<'a> {
    pub live: LiveView,
    pub metrics: Option<MetricsFile>,
    pub log: Option<RequestLogFile>,
    pub stop_if: &'a [StopLimit],
    /// Which of them was crossed, and how.
    pub crossed: Option<String>,
}

impl Watcher for Watch<'_> {
    fn on_window(&mut self, progress: &Progress) -> bool {
        self.live.show(progress);
        if let Some(metrics) = &mut self.metrics {
            metrics.add(progress);
        }
        if self.crossed.is_none() {
            self.crossed = self.stop_if.iter().find_map(|limit| limit.crossed_by(progress));
        }
        self.crossed.is_none()
    }

    fn on_requests(&mut self, ended: &[Logged]) {
        if let Some(log) = &mut self.log {
            log.add(ended);
        }
    }
}
