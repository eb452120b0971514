//! How many requests one connection carries.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum KeepAlive {
    #[default]
    Always,
    Never,
    /// This many requests per connection.
    Requests(u32),
}

const WANTED: &str = "\"always\", \"never\" or a number of requests from 1";

impl KeepAlive {
    /// Requests after which a connection is closed by us, if ever.
    pub fn limit(self) -> Option<u32> {
        match self {
            KeepAlive::Always => None,
            KeepAlive::Never => Some(1),
            KeepAlive::Requests(count) => Some(count),
        }
    }
}

impl fmt::Display for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeepAlive::Always => f.write_str("always"),
            KeepAlive::Never => f.write_str("never"),
            KeepAlive::Requests(count) => write!(f, "{count}"),
        }
    }
}

impl FromStr for KeepAlive {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "always" => Ok(KeepAlive::Always),
            "never" => Ok(KeepAlive::Never),
            _ => match text.parse() {
                Ok(count) if count > 0 => Ok(KeepAlive::Requests(count)),
                _ => Err(format!("{text:?} is not {WANTED}")),
            },
        }
    }
}

/// As an order has it.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "is not \"always\", \"never\" or a number of requests from 1")]
enum Form {
    Number(u32),
    Word(String),
}

impl TryFrom<Form> for KeepAlive {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, String> {
        match form {
            Form::Word(word) if word == "always" => Ok(KeepAlive::Always),
            Form::Word(word) if word == "never" => Ok(KeepAlive::Never),
            Form::Number(count @ 1..) => Ok(KeepAlive::Requests(count)),
            Form::Number(_) | Form::Word(_) => Err(format!("is not {WANTED}")),
        }
    }
}

impl From<KeepAlive> for Form {
    fn from(keepalive: KeepAlive) -> Self {
        match keepalive {
            KeepAlive::Requests(number) => Form::Number(number),
            named => Form::Word(named.to_string()),
        }
    }
}
