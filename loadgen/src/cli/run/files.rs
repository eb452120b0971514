//! Files that a run writes. They are opened before anything is sent: a file that can't be written
//! must not cost the figures.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::cli::exit::{Stop, unwritten};
use crate::engine::{Logged, Measured, Plan, Progress};
use crate::named;
use crate::output::prometheus::Metrics;
use crate::output::request_log;

/// A file for one kind of output, if one was asked for.
pub struct Sink(Option<(String, File)>);

impl Sink {
    pub fn create(flag: &str, path: Option<&Path>) -> Result<Sink, Stop> {
        let Some(path) = path else { return Ok(Sink(None)) };
        let name = name_of(flag, path);
        match named::create(path) {
            Ok(file) => Ok(Sink(Some((name, file)))),
            Err(error) => Err(format!("{name}: {error}").into()),
        }
    }

    pub fn write(self, render: impl FnOnce() -> String) -> Result<(), Stop> {
        match self.0 {
            None => Ok(()),
            Some((name, mut file)) => {
                file.write_all(render().as_bytes()).map_err(|error| unwritten(&name, &error))
            }
        }
    }
}

fn name_of(flag: &str, path: &Path) -> String {
    format!("{flag} {}", path.display())
}

/// Metrics for Prometheus: a file that is replaced when a window is over, so that nobody reads half
/// of it.
#[derive(Debug)]
pub struct MetricsFile {
    path: PathBuf,
    metrics: Metrics,
    trouble: Option<io::Error>,
}

impl MetricsFile {
    pub const FLAG: &str = "--prometheus";

    pub fn create(path: &Path, plan: &Plan) -> Result<MetricsFile, Stop> {
        let name = name_of(Self::FLAG, path);
        // A device would be replaced as well.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(format!("{name}: is no regular file, and would be replaced").into());
        }
        let metrics = Metrics::new(plan);
        let mut file = MetricsFile { path: path.to_owned(), metrics, trouble: None };
        file.replace();
        match file.trouble.take() {
            Some(error) => Err(format!("{name}: {error}").into()),
            None => Ok(file),
        }
    }

    pub fn add(&mut self, progress: &Progress) {
        self.metrics.add(progress);
        self.replace();
    }

    pub fn end(mut self, measured: &Measured) -> Result<(), Stop> {
        self.metrics.end(&measured.sum.whole);
        self.replace();
        let name = name_of(Self::FLAG, &self.path);
        self.trouble.map_or(Ok(()), |error| Err(unwritten(&name, &error)))
    }

    fn replace(&mut self) {
        if let Err(error) = named::replace(&self.path, self.metrics.render().as_bytes()) {
            self.trouble.get_or_insert(error);
        }
    }
}

/// The log of requests, which grows while the load runs.
pub struct RequestLogFile {
    name: String,
    file: BufWriter<File>,
    plan: Arc<Plan>,
    trouble: Option<io::Error>,
}

impl RequestLogFile {
    pub fn create(path: &Path, plan: &Arc<Plan>) -> Result<RequestLogFile, Stop> {
        let name = name_of("--log-requests", path);
        let file = named::create(path).map_err(|error| format!("{name}: {error}"))?;
        let (file, plan) = (BufWriter::new(file), Arc::clone(plan));
        Ok(RequestLogFile { name, file, plan, trouble: None })
    }

    /// What can't be written must not end the load.
    pub fn add(&mut self, ended: &[Logged]) {
        if self.trouble.is_none() {
            let text = request_log::render(&self.plan, ended);
            self.trouble = self.file.write_all(text.as_bytes()).err();
        }
    }

    pub fn end(mut self) -> Result<(), Stop> {
        let trouble = self.trouble.take().or_else(|| self.file.flush().err());
        trouble.map_or(Ok(()), |error| Err(unwritten(&self.name, &error)))
    }
}
