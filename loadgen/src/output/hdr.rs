//! The percentile distribution in the text form of HdrHistogram (`.hgrm`), in microseconds.

use std::fmt::Write;

use crate::record::Histogram;

/// Ready for HdrHistogram's plotter.
pub fn render(histogram: &Histogram) -> String {
    let mut text = String::from("       Value     Percentile TotalCount 1/(1-Percentile)\n\n");
    for step in histogram.percentiles() {
        let _ = write!(text, "{:12.3} {:.12} {:10}", step.us, step.quantile, step.count);
        let _ = match step.quantile {
            1.0 => writeln!(text),
            below => writeln!(text, " {:14.2}", 1.0 / (1.0 - below)),
        };
    }
    let _ = writeln!(text, "#[Mean    = {:12.3}]", histogram.mean_us());
    let _ = writeln!(
        text,
        "#[Max     = {:12.3}, Total count = {:12}]",
        histogram.max_us(),
        histogram.count()
    );
    text
}
