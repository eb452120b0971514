//! Flags of what is shown and written.

use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub struct OutputFlags {
    /// Print the result as JSON [default: a table]
    #[arg(long)]
    pub json: bool,
    /// Write the distribution of response times, in microseconds, as HdrHistogram's percentile
    /// text [default: none]
    #[arg(long, value_name = "FILE")]
    pub hdr: Option<PathBuf>,
    /// Write one row per window as CSV [default: none]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// No live line on the terminal [default: shown when standard error is a terminal]
    #[arg(short, long)]
    pub quiet: bool,
}
