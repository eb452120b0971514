//! What the programs share, whatever serves it: the database's rows and the rules of each site.

mod fortunes;
mod items;
mod store;
mod upload;
mod worlds;

use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

pub use items::{Item, Items, NewItem, page_number, parse_id};
pub use store::{Error, Store};
pub use upload::{Received, Upload};
pub use worlds::{World, count};

/// The answer of the site `json`.
#[derive(Serialize)]
pub struct Message {
    pub message: &'static str,
}

/// The answer to a request that can't be fulfilled.
#[derive(Serialize)]
pub struct Failure {
    pub error: String,
}

/// A variable of the environment.
pub fn variable<T: FromStr<Err: Display>>(name: &str) -> Result<T, String> {
    let text = std::env::var(name).map_err(|error| format!("{name}: {error}"))?;
    text.parse().map_err(|error| format!("{name}: {error}"))
}
