//! How many requests one connection carries.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

impl Serialize for KeepAlive {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            KeepAlive::Requests(count) => to.serialize_u32(*count),
            named => to.collect_str(named),
        }
    }
}

impl<'de> Deserialize<'de> for KeepAlive {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyForm;
        impl Visitor<'_> for AnyForm {
            type Value = KeepAlive;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(WANTED)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<KeepAlive, E> {
                match text {
                    "always" => Ok(KeepAlive::Always),
                    "never" => Ok(KeepAlive::Never),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, count: u64) -> Result<KeepAlive, E> {
                match u32::try_from(count) {
                    Ok(count) if count > 0 => Ok(KeepAlive::Requests(count)),
                    _ => Err(E::invalid_value(de::Unexpected::Unsigned(count), &self)),
                }
            }
        }
        from.deserialize_any(AnyForm)
    }
}
