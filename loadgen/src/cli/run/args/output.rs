//! Flags of what is shown and written.

use std::num::NonZeroU32;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct OutputFlags {
    /// Print the result as JSON [default: a table]
    #[arg(long)]
    pub json: bool,
    /// Write the distribution of latency, in microseconds, as HdrHistogram's percentile text
    /// [default: none]
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Write one row per window as CSV [default: none]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write metrics for Prometheus, replaced when a window is over, for the textfile collector of
    /// its node exporter: loadgen.prom [default: none]
    #[arg(long, value_name = "FILE")]
    pub prometheus: Option<PathBuf>,
    /// Write each request that ended as a line of JSON: when it was due, sent, answered, with what,
    /// over which connection [default: none]
    #[arg(long, value_name = "FILE")]
    pub log_requests: Option<PathBuf>,
    /// Of the requests of each thread, log one in so many [default: 1, all of them]
    #[arg(long, value_name = "COUNT", requires = "log_requests")]
    pub log_every: Option<NonZeroU32>,
    /// No live view on the terminal [default: throughput, latency and failures of each window, when
    /// standard error is a terminal]
    #[arg(short, long)]
    pub quiet: bool,
}

impl OutputFlags {
    /// How many requests there are for each that is logged, where any is.
    pub fn log_every(&self) -> Option<NonZeroU32> {
        self.log_requests.as_ref().map(|_| self.log_every.unwrap_or(NonZeroU32::MIN))
    }

    /// Files that would overwrite each other.
    pub fn check(&self) -> Result<(), String> {
        let given = [
            ("--hdr", &self.hdr),
            ("--csv", &self.csv),
            ("--prometheus", &self.prometheus),
            ("--log-requests", &self.log_requests),
        ];
        let files: Vec<_> =
            given.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?))).collect();
        for (nth, (flag, file)) in files.iter().enumerate() {
            if let Some((other, _)) = files[..nth].iter().find(|(_, known)| known == file) {
                return Err(format!(
                    "{other} and {flag} with the same file would overwrite each other"
                ));
            }
        }
        Ok(())
    }
}
