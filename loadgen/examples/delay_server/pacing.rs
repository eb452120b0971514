//! How late requests arrived by a timetable of which the server knows only the rate.

/// Of requests that are due at an even rate; they count from the timetable in which the earliest
/// of them, as seen from there, was in time.
pub fn arrived_late_ns(mut arrived_ns: Vec<u64>, due_per_s: f64) -> impl Iterator<Item = u64> {
    arrived_ns.sort_unstable();
    let due_ns = move |nth: usize| (nth as f64 * 1e9 / due_per_s).round() as i64;
    let after_due_ns: Vec<i64> =
        arrived_ns.iter().enumerate().map(|(nth, at_ns)| *at_ns as i64 - due_ns(nth)).collect();
    let start_ns = after_due_ns.iter().copied().min().unwrap_or(0);
    after_due_ns.into_iter().map(move |at_ns| (at_ns - start_ns) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_late_and_an_even_stream_is_not() {
        let late = |arrived: &[u64]| arrived_late_ns(arrived.to_vec(), 1e8).collect::<Vec<_>>();
        assert_eq!(late(&[1000, 1010, 1020, 1030]), [0, 0, 0, 0]);
        assert_eq!(late(&[1030, 1030, 1030, 1030]), [30, 20, 10, 0]);
        assert_eq!(late(&[1005, 1010, 1045, 1030]), [5, 0, 10, 15]);
        assert!(late(&[]).is_empty());
    }
}
