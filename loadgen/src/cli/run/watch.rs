//! Who follows a run: the terminal, and files that grow with it.

use super::files::{MetricsFile, RequestLogFile};
use crate::engine::{Logged, Progress, Watcher};
use crate::output::live::LiveLine;

pub struct Watch {
    pub live: LiveLine,
    pub metrics: Option<MetricsFile>,
    pub log: Option<RequestLogFile>,
}

impl Watcher for Watch {
    fn on_window(&mut self, progress: &Progress) {
        self.live.show(progress.window);
        if let Some(metrics) = &mut self.metrics {
            metrics.add(progress);
        }
    }

    fn on_requests(&mut self, ended: &[Logged]) {
        if let Some(log) = &mut self.log {
            log.add(ended);
        }
    }
}
