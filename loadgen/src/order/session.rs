//! Users that log in, and the values that go into their requests.

use serde::Deserialize;

use super::request::Request;

/// What makes users of connections: each keeps its cookies and its values.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Session {
    /// What each user asks once, one after the other, before the slot.
    pub login: Vec<Request>,
    /// By name: what `{{NAME}}` stands for in requests.
    #[serde(with = "tuple_vec_map")]
    pub values: Vec<(String, Values)>,
    /// Users who logged in for an earlier order of the same key stay logged in. Without it they log
    /// in for each order.
    pub key: Option<String>,
    /// Log in, and nothing else.
    pub only_login: bool,
}

/// Where the values of one name come from. All but those of each user are drawn again for each flow
/// that needs them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
pub enum Values {
    /// `{{NAME.COLUMN}}`.
    Rows(Rows),
    Counter(Counter),
    Choose(Vec<String>),
    Random(Between),
    /// 16 hexadecimal digits that no other flow of any order gets.
    Unique {},
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub each: Each,
}

/// Who gets another row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Each {
    /// Each user has one for good.
    User,
    /// Each flow has the next one; the first follows the last.
    Turn,
    /// Each flow has any.
    Random,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    pub from: i64,
    pub step: i64,
}

/// Whole numbers, both ends among them.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    pub from: i64,
    pub to: i64,
}
