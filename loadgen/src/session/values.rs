//! Where values come from that no answer gives: rows, counters, chance.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand::RngExt;
use rand::rngs::SmallRng;

use crate::order::{Each, Session, Values};

/// All that a slot's users share; each value has a number.
#[derive(Debug)]
pub struct Sources {
    /// Of all values, those that answers give among them.
    pub names: Vec<String>,
    sources: Vec<Source>,
}

#[derive(Debug)]
struct Source {
    values: Values,
    /// The number of its first value; rows have several.
    first: usize,
    taken: AtomicU64,
}

/// No two are alike, of whatever order or process.
fn unique() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let spread = (now.as_nanos() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    spread.wrapping_add(NEXT.fetch_add(1 << 40, Ordering::Relaxed))
}

impl Sources {
    /// `captured` names what answers give; `users` is how many there are.
    pub fn new<'a>(
        session: &Session,
        captured: impl Iterator<Item = &'a String>,
        users: usize,
    ) -> Result<Sources, String> {
        let (mut names, mut sources) = (Vec::new(), Vec::new());
        for (name, values) in &session.values {
            check(values, users).map_err(|why| format!("session.values.{name}: {why}"))?;
            let first = names.len();
            match values {
                Values::Rows(rows) => {
                    names.extend(rows.columns.iter().map(|column| format!("{name}.{column}")));
                }
                _ => names.push(name.clone()),
            }
            sources.push(Source { values: values.clone(), first, taken: AtomicU64::new(0) });
        }
        for name in captured {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        Ok(Sources { names, sources })
    }

    pub fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    /// Which sources have to be drawn from for these values.
    pub fn of(&self, values: impl Iterator<Item = usize>) -> Vec<usize> {
        let source = |value: usize| {
            self.sources.iter().rposition(|source| {
                let count = match &source.values {
                    Values::Rows(rows) => rows.columns.len(),
                    _ => 1,
                };
                (source.first..source.first + count).contains(&value)
            })
        };
        let mut needed: Vec<usize> = values.filter_map(source).collect();
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Gives a user what is its own for good.
    pub fn settle(&self, user: usize, values: &mut [Vec<u8>]) {
        for source in &self.sources {
            if let Values::Rows(rows) = &source.values
                && rows.each == Each::User
            {
                fill(&rows.rows[user], source.first, values);
            }
        }
    }

    /// Draws what a flow needs.
    pub fn draw(&self, sources: &[usize], values: &mut [Vec<u8>], rng: &mut SmallRng) {
        for source in sources.iter().map(|number| &self.sources[*number]) {
            let value = &mut values[source.first];
            let mut write = |text: std::fmt::Arguments| {
                value.clear();
                // Writing to memory doesn't fail.
                let _ = value.write_fmt(text);
            };
            match &source.values {
                Values::Rows(rows) => {
                    let row = match rows.each {
                        Each::User => continue,
                        Each::Turn => source.take() as usize % rows.rows.len(),
                        Each::Random => rng.random_range(0..rows.rows.len()),
                    };
                    fill(&rows.rows[row], source.first, values);
                }
                Values::Counter(counter) => {
                    let nth = source.take() as i64;
                    write(format_args!(
                        "{}",
                        counter.from.wrapping_add(counter.step.wrapping_mul(nth))
                    ));
                }
                Values::Choose(texts) => {
                    write(format_args!("{}", texts[rng.random_range(0..texts.len())]))
                }
                Values::Random(range) => {
                    write(format_args!("{}", rng.random_range(range.from..=range.to)))
                }
                Values::Unique {} => write(format_args!("{:016x}", unique())),
            }
        }
    }
}

impl Source {
    fn take(&self) -> u64 {
        self.taken.fetch_add(1, Ordering::Relaxed)
    }
}

fn fill(row: &[String], first: usize, values: &mut [Vec<u8>]) {
    for (text, value) in row.iter().zip(&mut values[first..]) {
        value.clear();
        value.extend_from_slice(text.as_bytes());
    }
}

fn check(values: &Values, users: usize) -> Result<(), String> {
    match values {
        Values::Rows(rows) => {
            let width = rows.columns.len();
            if rows.rows.is_empty() || width == 0 {
                return Err("rows: is empty".into());
            }
            if let Some(place) = rows.rows.iter().position(|row| row.len() != width) {
                return Err(format!("rows[{place}]: has not as many values as there are columns"));
            }
            if rows.each == Each::User && rows.rows.len() < users {
                return Err(format!(
                    "there are {} rows for {users} users; give more rows, fewer connections, or \
                     \"each\": \"turn\"",
                    rows.rows.len()
                ));
            }
            Ok(())
        }
        Values::Choose(texts) if texts.is_empty() => Err("choose: is empty".into()),
        Values::Random(range) if range.from > range.to => {
            Err(format!("random: from {} to {} there is no number", range.from, range.to))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;

    use super::*;

    fn sources(values: serde_json::Value, users: usize) -> Result<Sources, String> {
        let session = serde_json::json!({"values": values});
        let session = serde_json::from_value(session).expect("a session");
        Sources::new(&session, ["token".to_owned()].iter(), users)
    }

    fn drawn(sources: &Sources, times: usize) -> Vec<String> {
        let mut rng = SmallRng::seed_from_u64(1);
        let all = sources.of(0..sources.names.len());
        let mut values = vec![Vec::new(); sources.names.len()];
        let mut draw = |_| {
            sources.draw(&all, &mut values, &mut rng);
            String::from_utf8(values[0].clone()).expect("text")
        };
        (0..times).map(&mut draw).collect()
    }

    #[test]
    fn rows_go_to_users_or_in_turn() {
        let rows = serde_json::json!([["a", "1"], ["b", "2"], ["c", "3"]]);
        let of = |each: &str, users: usize| {
            let table = serde_json::json!({"columns": ["n", "p"], "rows": rows, "each": each});
            sources(serde_json::json!({"who": {"rows": table}}), users)
        };
        let by_user = of("user", 3).expect("enough rows");
        assert_eq!(by_user.names, ["who.n", "who.p", "token"]);
        let mut values = vec![Vec::new(); 3];
        by_user.settle(2, &mut values);
        assert_eq!(values, [b"c".to_vec(), b"3".to_vec(), b"".to_vec()]);
        assert_eq!(drawn(&by_user, 2), ["", ""]);
        assert!(of("user", 4).is_err_and(|why| why.contains("3 rows for 4 users")));
        assert_eq!(drawn(&of("turn", 9).expect("rows"), 4), ["a", "b", "c", "a"]);
        let any: HashSet<_> = drawn(&of("random", 9).expect("rows"), 50).into_iter().collect();
        assert_eq!(any.len(), 3);
    }

    #[test]
    fn counts_chooses_and_never_repeats() {
        let counter = sources(serde_json::json!({"n": {"counter": {"from": 7, "step": 2}}}), 1);
        assert_eq!(drawn(&counter.expect("a counter"), 3), ["7", "9", "11"]);
        let chosen = sources(serde_json::json!({"n": {"choose": ["x", "y"]}}), 1).expect("texts");
        assert!(drawn(&chosen, 20).iter().all(|drawn| drawn == "x" || drawn == "y"));
        let dice = sources(serde_json::json!({"n": {"random": {"from": 1, "to": 6}}}), 1);
        assert!(
            drawn(&dice.expect("a die"), 50).iter().all(|drawn| ("1"..="6").contains(&&**drawn))
        );
        let mut unique = HashSet::new();
        for _ in 0..2 {
            let again = sources(serde_json::json!({"n": {"unique": {}}}), 1).expect("unique");
            unique.extend(drawn(&again, 500));
        }
        assert_eq!(unique.len(), 1000);
    }

    #[test]
    fn only_what_is_needed_is_drawn() {
        let two = serde_json::json!({"a": {"counter": {"from": 0, "step": 1}},
                                     "b": {"unique": {}}});
        let two = sources(two, 1).expect("two");
        assert_eq!(two.of([1, 2].into_iter()), [1]);
        assert_eq!(two.number("token"), Some(2));
    }

    #[test]
    fn what_gives_nothing_is_refused() {
        for (values, message) in [
            (serde_json::json!({"v": {"choose": []}}), "choose: is empty"),
            (serde_json::json!({"v": {"random": {"from": 2, "to": 1}}}), "no number"),
            (
                serde_json::json!({"v": {"rows": {"columns": ["a"], "rows": [], "each": "turn"}}}),
                "empty",
            ),
            (
                serde_json::json!({"v": {"rows": {"columns": ["a"], "rows": [["b", "c"]], "each": "turn"}}}),
                "rows[0]",
            ),
        ] {
            let refused = sources(values, 1).expect_err("refused");
            assert!(
                refused.starts_with("session.values.v: ") && refused.contains(message),
                "{refused}"
            );
        }
    }
}
