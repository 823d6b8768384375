//! What a sweep measured: a table, a CSV, a sentence; plots in [`plots`].

pub mod plots;

use std::fmt::Write;

use super::text::counted;
use crate::sweep::{Estimate, Panel, statistics::Interval, unit::Length};

/// A row a cell, with the bounds of each number's 95 % interval beside it; one that is
/// not known is left empty.
///
/// # Errors
/// None that memory does not give.
pub fn cells_csv(panels: &[Panel<'_>]) -> Result<String, String> {
    let mut names: Vec<String> = FIXED.map(str::to_owned).to_vec();
    for measure in MEASURES {
        names.extend([
            measure.to_owned(),
            format!("{measure}_low"),
            format!("{measure}_high"),
        ]);
    }
    names.extend(["on_front".to_owned(), "front_settled".to_owned()]);
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| error.to_string();
    writer.write_record(&names).map_err(failed)?;
    for panel in panels {
        for estimate in &panel.estimates {
            writer.write_record(record(estimate)).map_err(failed)?;
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// What a cell is. Durations are in seconds, rates in parts of one.
const FIXED: [&str; 19] = [
    "cell",
    "setting",
    "ttl",
    "window",
    "renew_after",
    "try_timeout",
    "lock_delay",
    "pauses",
    "pause_median",
    "pause_sigma",
    "pauses_per_hour",
    "latency_min",
    "latency_max",
    "drift_min",
    "drift_max",
    "pauses_met",
    "crashes_met",
    "unprovoked_met",
    "hours_led",
];

/// What was measured of it. Durations are in seconds; empty where there was nothing.
const MEASURES: [&str; 9] = [
    "false_failovers_per_hour",
    "availability",
    "failover_p50",
    "failover_p95",
    "failover_p99",
    "leaderless_p50",
    "leaderless_p95",
    "leaderless_p99",
    "renewals_per_hour",
];

fn record(estimate: &Estimate<'_>) -> Vec<String> {
    let (cell, lease) = (estimate.cell, estimate.cell.lease());
    let environment = cell.environment;
    let seconds = |nanos: u64| format!("{:.6}", nanos as f64 / 1e9);
    let part = |ppb: u64| format!("{:.9}", ppb as f64 / 1e9);
    let (pauses, crashes) = estimate.faults;
    let mut record = vec![
        cell.place.to_string(),
        cell.setting.name.clone(),
        seconds(lease.ttl),
        seconds(lease.safe_window()),
        seconds(lease.renew_after()),
        seconds(lease.try_timeout),
        seconds(lease.lock_delay),
        environment.pauses.name.clone(),
        seconds(environment.pauses.median),
        environment.pauses.sigma.to_string(),
        environment.pauses.per_hour.to_string(),
        seconds(environment.net.min_latency),
        seconds(environment.net.max_latency),
        part(environment.drift.least),
        part(environment.drift.most),
        pauses.to_string(),
        crashes.to_string(),
        estimate.unprovoked.to_string(),
        format!("{:.6}", estimate.hours_led),
    ];
    let measured = [
        Some(estimate.false_failovers),
        Some(estimate.availability),
        estimate.failover_p50,
        estimate.failover_p95,
        estimate.failover_p99,
        estimate.leaderless_p50,
        estimate.leaderless_p95,
        estimate.leaderless_p99,
        Some(estimate.renewals),
    ];
    for interval in measured {
        let number = |of: fn(Interval) -> f64| match interval.map(of) {
            Some(number) if number.is_finite() => format!("{number:.7}"),
            _ => String::new(),
        };
        record.extend([number(|i| i.value), number(|i| i.low), number(|i| i.high)]);
    }
    record.extend([estimate.on_front, estimate.settled].map(|place| place.to_string()));
    record
}

/// The settings on each environment's Pareto front, the quickest to fail over first.
pub fn summary(panels: &[Panel<'_>]) -> String {
    let mut text = String::new();
    for panel in panels {
        let _ = writeln!(text, "{}", panel.environment);
        let _ = writeln!(
            text,
            "  {:<12} {:>27} {:>9} {:>20} {:>20} {:>22}",
            "on the front", "available", "failover", "p95", "false failovers/h", "renewals/h"
        );
        for estimate in front(panel) {
            let _ = writeln!(
                text,
                "  {:<12} {:>27} {:>9} {:>20} {:>20} {:>22}",
                named(estimate),
                percent(estimate.availability),
                seconds(estimate.failover_p50),
                bounded(estimate.failover_p95),
                few(estimate.false_failovers),
                many(estimate.renewals),
            );
        }
        if front(panel).iter().any(|estimate| !estimate.settled) {
            text += "  ?: another may be better in both, which the intervals do not settle\n";
        }
        let others = || panel.estimates.iter().filter(|e| !e.on_front);
        if others().count() > 0 {
            let unsettled = others().filter(|estimate| !estimate.settled).count();
            let _ = writeln!(
                text,
                "  {} less available or slower to fail over{}: cells.csv",
                match others().count() {
                    1 => "1 setting is".to_owned(),
                    others => format!("{} are", counted(others as u64, "setting")),
                },
                match unsettled {
                    0 => String::new(),
                    all if all == others().count() => ", none of them surely".to_owned(),
                    unsettled => format!(", {unsettled} of them not surely"),
                }
            );
        }
        text.push('\n');
    }
    text.pop();
    text
}

/// Those on the front, by failover time.
fn front<'a, 'p>(panel: &'a Panel<'p>) -> Vec<&'a Estimate<'p>> {
    let mut front: Vec<_> = panel.estimates.iter().filter(|e| e.on_front).collect();
    let failover = |e: &Estimate<'_>| e.failover_p95.map_or(0.0, |p95| p95.value);
    front.sort_by(|a, b| failover(a).total_cmp(&failover(b)));
    front
}

/// A setting on the front, with a mark where the intervals do not settle that.
fn named(estimate: &Estimate<'_>) -> String {
    let name = &estimate.setting().name;
    match estimate.settled {
        true => name.clone(),
        false => format!("{name} ?"),
    }
}

/// Which setting to take for an availability, in one sentence.
pub fn recommendation(panel: &Panel<'_>, availability: f64) -> String {
    let wanted = format!("{} %", shortest(availability * 100.0));
    let environment = panel.environment;
    match panel.recommended(availability) {
        Ok((estimate, reaching)) if reaching.len() == 1 => format!(
            "{}; the only setting that reaches {wanted} with 95 % confidence under \
             {environment}.",
            praise(estimate)
        ),
        Ok((estimate, reaching)) => format!(
            "{}; the cheapest in renewals of the {} settings that reach {wanted} with 95 % \
             confidence{} under {environment}.",
            praise(estimate),
            reaching.len(),
            as_cheap(estimate, &reaching)
        ),
        Err(best) => format!(
            "No setting reaches {wanted} with 95 % confidence under {environment}; the most \
             available is {}.",
            praise(best)
        ),
    }
}

/// Those of the others that the intervals do not tell from the cheapest.
fn as_cheap(cheapest: &Estimate<'_>, reaching: &[&Estimate<'_>]) -> String {
    let others = reaching.iter().filter(|other| {
        other.cell.place != cheapest.cell.place && other.renewals.low <= cheapest.renewals.high
    });
    let names: Vec<&str> = others.map(|other| other.setting().name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (no dearer, perhaps: {})", names.join(", ")),
    }
}

fn praise(estimate: &Estimate<'_>) -> String {
    let (lease, setting) = (estimate.cell.lease(), estimate.setting());
    // What a setting of the grid is called is its ttl and its part again.
    let name = match setting.is_preset() {
        true => format!("{}: ", setting.name),
        false => String::new(),
    };
    format!(
        "{name}ttl {} renewed every {:.1}s: available {}, failover {} p95, {} false failovers and {} \
         renewals an hour",
        Length(lease.ttl),
        lease.renew_after() as f64 / 1e9,
        percent(estimate.availability),
        bounded(estimate.failover_p95),
        few(estimate.false_failovers),
        many(estimate.renewals),
    )
}

/// `99.97 % (99.95-99.98)`
fn percent(part: Interval) -> String {
    let Interval { value, low, high } = part.times(100.0);
    format!("{value:.3} % ({low:.3}-{high:.3})")
}

/// `6.1s`
fn seconds(time: Option<Interval>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1}s", time.value))
}

/// `6.1s (5.9 to 6.3)`, and `6.1s (5.9 to -)` where nothing bounds it.
fn bounded(time: Option<Interval>) -> String {
    let Some(Interval { value, low, high }) = time else {
        return "-".to_owned();
    };
    let high = match high.is_finite() {
        true => format!("{high:.1}"),
        false => "-".to_owned(),
    };
    format!("{value:.1}s ({low:.1} to {high})")
}

/// `0.20 (0.01-0.71)`
fn few(rate: Interval) -> String {
    let Interval { value, low, high } = rate;
    format!("{value:.2} ({low:.2}-{high:.2})")
}

/// `2050 (1990 to 2110)`, and `2050 (0 to -)` where nothing bounds it.
fn many(rate: Interval) -> String {
    let Interval { value, low, high } = rate;
    let high = match high.is_finite() {
        true => format!("{high:.0}"),
        false => "-".to_owned(),
    };
    format!("{value:.0} ({low:.0} to {high})")
}

/// A number with two or three digits that matter and no zeros behind.
fn shortest(number: f64) -> String {
    let text = format!("{number:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}
