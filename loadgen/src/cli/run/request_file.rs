//! A file of requests, one JSON object a line.

use std::fs;
use std::path::Path;

use crate::order::Request;

/// Reads all requests; a mistake is named with its line.
pub fn read(file: &Path) -> Result<Vec<Request>, String> {
    let shown = file.display();
    let text =
        fs::read_to_string(file).map_err(|error| format!("--request-file {shown}: {error}"))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let requests: Result<Vec<Request>, String> = lines
        .map(|(index, line)| {
            let deserializer = &mut serde_json::Deserializer::from_str(line);
            serde_path_to_error::deserialize(deserializer)
                .map_err(|error| format!("{shown}:{}: {error}", index + 1))
        })
        .collect();
    match requests {
        Ok(requests) if requests.is_empty() => Err(format!("{shown}: has no request")),
        other => other,
    }
}
