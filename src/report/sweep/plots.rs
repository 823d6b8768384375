//! The plots of a sweep, as SVG: a panel an environment, a line a part of the window after
//! which leases are renewed, the ttl on a logarithmic axis.

use std::ops::Range;

use plotters::{coord::Shift, prelude::*};

use super::{front, named};
use crate::sweep::{Estimate, Panel, statistics::Interval};

const WIDTH: u32 = 960;
/// Of one panel.
const HEIGHT: u32 = 440;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), String>;

/// Every plot: the file's name and its text.
///
/// # Errors
/// What the plotting library says.
pub fn all(panels: &[Panel<'_>]) -> Result<Vec<(&'static str, String)>, String> {
    Ok(vec![
        ("false-failovers.svg", figure(panels, false_failovers)?),
        ("availability.svg", figure(panels, availability)?),
        ("leaderless.svg", figure(panels, leaderless)?),
        ("renewals.svg", figure(panels, renewals)?),
    ])
}

/// One panel below the other.
fn figure(
    panels: &[Panel<'_>],
    draw: impl Fn(&Area<'_>, &Panel<'_>) -> Drawn,
) -> Result<String, String> {
    let mut svg = String::new();
    let rows = panels.len().max(1);
    let height = HEIGHT * u32::try_from(rows).unwrap_or(1);
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE).map_err(told)?;
        for (area, panel) in root.split_evenly((rows, 1)).iter().zip(panels) {
            draw(area, panel)?;
        }
        root.present().map_err(told)?;
    }
    Ok(svg)
}

fn told(error: impl std::fmt::Display) -> String {
    format!("a plot cannot be drawn: {error}")
}

fn false_failovers(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let axes = Axes {
        title: "False failovers",
        y: "an hour, with 95 % intervals of those by pauses",
        logarithmic: false,
        names: SeriesLabelPosition::UpperRight,
    };
    axes.by_ttl(area, panel, &[|e| Some(e.false_failovers)])
}

fn leaderless(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let axes = Axes {
        title: "Time without a leader: p50 (dashed) and p99",
        y: "seconds",
        logarithmic: true,
        names: SeriesLabelPosition::UpperLeft,
    };
    axes.by_ttl(area, panel, &[|e| e.leaderless_p99, |e| e.leaderless_p50])
}

fn renewals(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let axes = Axes {
        title: "Renewals sent",
        y: "an hour",
        logarithmic: true,
        names: SeriesLabelPosition::UpperRight,
    };
    axes.by_ttl(area, panel, &[|e| Some(e.renewals)])
}

/// What is plotted against the ttl.
struct Axes {
    title: &'static str,
    y: &'static str,
    logarithmic: bool,
    /// Where the lines leave room for their names.
    names: SeriesLabelPosition,
}

type Measure = fn(&Estimate<'_>) -> Option<Interval>;

/// A point of a line: the ttl in seconds, and what was measured.
type Point = (f64, Interval);

impl Axes {
    /// A line a series and measure; the first measure is drawn through.
    fn by_ttl(&self, area: &Area<'_>, panel: &Panel<'_>, measures: &[Measure]) -> Drawn {
        let mut lines: Vec<(usize, String, usize, Vec<Point>)> = Vec::new();
        for (nth, series) in series(panel).into_iter().enumerate() {
            for (which, measure) in measures.iter().enumerate() {
                let mine = panel
                    .estimates
                    .iter()
                    .filter(|e| e.setting().series == series);
                let mut points: Vec<Point> = mine
                    .filter_map(|e| Some((ttl(e), measure(e)?)))
                    .filter(|(_, interval)| !self.logarithmic || interval.value > 0.0)
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                lines.push((nth, series.clone(), which, points));
            }
        }
        let points = || lines.iter().flat_map(|(.., points)| points);
        let x = around(points().map(|(ttl, _)| *ttl), true);
        let drawn = |y: &f64| y.is_finite() && (!self.logarithmic || *y > 0.0);
        let numbers = points().flat_map(|(_, i)| [i.low, i.value, i.high]);
        let y = around(numbers.filter(drawn), self.logarithmic);
        let Range { start, end } = y;
        let mut builder = ChartBuilder::on(area);
        builder
            .caption(
                format!("{}: {}", self.title, panel.environment),
                ("sans-serif", 15),
            )
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(74);
        // The two kinds of axis are two types.
        macro_rules! draw {
            ($y:expr) => {{
                let mut chart = builder
                    .build_cartesian_2d(x.log_scale(), $y)
                    .map_err(told)?;
                chart
                    .configure_mesh()
                    .light_line_style(TRANSPARENT)
                    .x_desc("ttl, seconds")
                    .y_desc(self.y)
                    .x_label_formatter(&number)
                    .y_label_formatter(&number)
                    .draw()
                    .map_err(told)?;
                for (nth, series, which, points) in &lines {
                    let colour = Palette99::pick(*nth).to_rgba();
                    let line: Vec<(f64, f64)> =
                        points.iter().map(|(ttl, i)| (*ttl, i.value)).collect();
                    match which {
                        0 => {
                            chart
                                .draw_series(LineSeries::new(line.clone(), colour.stroke_width(2)))
                                .map_err(told)?
                                .label(series.clone())
                                .legend(move |(x, y)| {
                                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                                });
                        }
                        _ => {
                            let dashed = DashedLineSeries::new(line.clone(), 4, 4, colour.into());
                            chart.draw_series(dashed).map_err(told)?;
                        }
                    }
                    let dots = line.iter().map(|&at| Circle::new(at, 3, colour.filled()));
                    chart.draw_series(dots).map_err(told)?;
                    // A bound that is not known is beyond the edge, and an arrow says so.
                    let bars = points.iter().map(|&(ttl, i)| {
                        let (low, high) = (i.low.max(start), i.high.min(end));
                        PathElement::new([(ttl, low), (ttl, high)], colour.mix(0.5))
                    });
                    chart.draw_series(bars).map_err(told)?;
                    let open = points.iter().filter(|(_, i)| i.high.is_infinite());
                    let arrows =
                        open.map(|&(ttl, _)| TriangleMarker::new((ttl, end), 5, colour.filled()));
                    chart.draw_series(arrows).map_err(told)?;
                }
                chart
                    .configure_series_labels()
                    .background_style(WHITE.mix(0.8))
                    .border_style(BLACK.mix(0.3))
                    .position(self.names.clone())
                    .draw()
                    .map_err(told)?;
            }};
        }
        match self.logarithmic {
            true => draw!(y.log_scale()),
            false => draw!(y),
        }
        Ok(())
    }
}

/// Each setting a point: failover time to the right, availability upwards; those on the
/// Pareto front are joined and named, with a question mark where the intervals do not settle
/// that they are.
fn availability(area: &Area<'_>, panel: &Panel<'_>) -> Drawn {
    let shown: Vec<(&Estimate<'_>, f64)> = panel
        .estimates
        .iter()
        .filter_map(|e| Some((e, e.failover_p95?.value)))
        .collect();
    let percent = |e: &Estimate<'_>| e.availability.times(100.0);
    let x = around(shown.iter().map(|(_, x)| *x), true);
    let bounds = |(e, _): &(&Estimate<'_>, f64)| [percent(e).low, percent(e).high];
    let y = around(shown.iter().flat_map(bounds), false);
    let mut chart = ChartBuilder::on(area)
        .caption(
            format!("Availability against failover time: {}", panel.environment),
            ("sans-serif", 15),
        )
        .margin(14)
        .margin_right(90)
        .x_label_area_size(44)
        .y_label_area_size(74)
        .build_cartesian_2d(x.log_scale(), y)
        .map_err(told)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("failover after a crash, p95, seconds")
        .y_desc("available, %")
        .x_label_formatter(&number)
        .y_label_formatter(&|percent: &f64| format!("{percent:.3}"))
        .draw()
        .map_err(told)?;
    for (nth, series) in series(panel).into_iter().enumerate() {
        let colour = Palette99::pick(nth).to_rgba();
        let mine = || shown.iter().filter(|(e, _)| e.setting().series == series);
        let bars = mine().map(|(e, x)| {
            let Interval { low, high, .. } = percent(e);
            PathElement::new([(*x, low), (*x, high)], colour.mix(0.35))
        });
        chart.draw_series(bars).map_err(told)?;
        chart
            .draw_series(
                mine().map(|(e, x)| Circle::new((*x, percent(e).value), 4, colour.filled())),
            )
            .map_err(told)?
            .label(series.clone())
            .legend(move |(x, y)| Circle::new((x + 9, y), 4, colour.filled()));
    }
    let front = front(panel);
    let front = || {
        front
            .iter()
            .filter_map(|e| Some((e, (e.failover_p95?.value, percent(e).value))))
    };
    chart
        .draw_series(LineSeries::new(
            front().map(|(_, at)| at),
            BLACK.stroke_width(1),
        ))
        .map_err(told)?
        .label("Pareto front")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 18, y)], BLACK));
    // Neighbours are close: their names go above and below in turn.
    let marks = front()
        .zip([-14, 8].into_iter().cycle())
        .map(|((e, at), y)| {
            let name = named(e);
            EmptyElement::at(at)
                + Circle::new((0, 0), 7, BLACK.stroke_width(1))
                + Text::new(name, (9, y), ("sans-serif", 13))
        });
    chart.draw_series(marks).map_err(told)?;
    chart
        .configure_series_labels()
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .position(SeriesLabelPosition::LowerRight)
        .draw()
        .map_err(told)
}

/// The series of a panel, in the order of its settings.
fn series(panel: &Panel<'_>) -> Vec<String> {
    let mut series: Vec<String> = Vec::new();
    for estimate in &panel.estimates {
        let name = &estimate.setting().series;
        if !series.contains(name) {
            series.push(name.clone());
        }
    }
    series
}

fn ttl(estimate: &Estimate<'_>) -> f64 {
    estimate.cell.lease().ttl as f64 / 1e9
}

/// A range with some room around values.
fn around(values: impl Iterator<Item = f64> + Clone, logarithmic: bool) -> Range<f64> {
    let least = values.clone().reduce(f64::min).unwrap_or(0.5);
    let most = values.reduce(f64::max).unwrap_or(1.0);
    if logarithmic {
        let least = least.max(1e-9);
        return least / 1.3..most.max(least) * 1.3;
    }
    let room = match (most - least) * 0.06 {
        room if room > 0.0 => room,
        _ => (most.abs() * 0.01).max(1e-3),
    };
    // What cannot be below nothing is not shown there.
    let from = match least >= 0.0 {
        true => (least - room).max(0.0),
        false => least - room,
    };
    from..most + room
}

fn number(number: &f64) -> String {
    super::shortest(*number)
}
