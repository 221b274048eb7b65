//! Connects one instance to the instances that it reads, and fills in inputs that follow from others.

use std::sync::Arc;

use stages::{Inputs, Port, Stage, Takes};

use super::grid::{Placed, Point, Spot, combinations, point};
use super::instance::{Feed, Instance, Pointer, Selection, Source, Wire};
use super::stage_axes::StageAxes;
use super::variant::Variant;
use crate::config::{Pipeline, Reference, StageDecl};
use crate::diagnostic::{Diagnostic, nearest};

/// What instances are connected to.
pub struct Surroundings<'a> {
    /// The pipeline.
    pub pipeline: &'a Pipeline,
    /// Where the stages are that come before.
    pub placed: &'a [Option<Placed>],
    /// Their instances.
    pub instances: &'a [Instance],
}

/// How one instance is connected.
pub struct Wired {
    /// What each port reads.
    pub wires: Vec<Wire>,
    /// How candidates are chosen among, if the stage has `select`: its position will be that of the next selection.
    pub selection: Option<Selection>,
    /// Of a stage that picks: the candidates.
    pub candidates: Option<Arc<[Spot]>>,
}

impl Surroundings<'_> {
    fn placed(&self, stage: usize) -> &Placed {
        self.placed[stage].as_ref().expect("readers come later")
    }

    /// Connects an instance; nothing if something that it reads was left out. `next` is the position of the next
    /// selection.
    pub fn connect(
        &self,
        decl: &StageDecl,
        variant: &Variant,
        axes: &StageAxes,
        at: &Point,
        next: usize,
    ) -> Result<Option<Wired>, Diagnostic> {
        let chosen = decl.select.as_ref();
        let chosen = chosen.map(|_| self.candidates(decl, variant, axes, at));
        if chosen.as_ref().is_some_and(Vec::is_empty) {
            return Ok(None);
        }
        let mut wires = Vec::with_capacity(variant.inputs.len());
        let mut candidates = None;
        for (input, from) in &variant.inputs {
            let theirs = &self.placed(from.stage).axes;
            let gathered = axes.gathered.iter().copied();
            let along: Vec<usize> = gathered.filter(|axis| theirs.contains(axis)).collect();
            let feed = match &chosen {
                _ if along.is_empty() => self.one(from, at)?,
                Some(points) => {
                    let spots = points
                        .iter()
                        .map(|extra| self.spot(from, at, extra).cloned());
                    let spots: Arc<[Spot]> = spots.flatten().collect();
                    let pointer = Spot::Best(next, spots.clone()).output(from, self.instances)?;
                    candidates = Some(spots);
                    Some(Feed::One(pointer))
                }
                None => self.collect(from, at, along)?,
            };
            let Some(feed) = feed else { return Ok(None) };
            if let Some(first) = feed.sources().next() {
                self.check_holds(decl, variant, &input.port, from, first)?;
            }
            wires.push(Wire {
                port: input.port.clone(),
                from: feed,
                filled_in: false,
            });
        }
        Ok(Some(Wired {
            wires,
            selection: self.selection(decl, at, chosen)?,
            candidates,
        }))
    }

    fn spot(&self, from: &Reference, at: &Point, extra: &Point) -> Option<&Spot> {
        self.placed(from.stage).get(at, extra, &self.pipeline.axes)
    }

    fn one(&self, from: &Reference, at: &Point) -> Result<Option<Feed>, Diagnostic> {
        match self.spot(from, at, &Vec::new()) {
            None => Ok(None),
            Some(spot) => Ok(Some(Feed::One(spot.output(from, self.instances)?))),
        }
    }

    /// All instances along some axes, without those that were left out.
    fn collect(
        &self,
        from: &Reference,
        at: &Point,
        along: Vec<usize>,
    ) -> Result<Option<Feed>, Diagnostic> {
        let mut parts = Vec::new();
        for n in 0..combinations(&along, &self.pipeline.axes) {
            let extra = point(n, &along, &self.pipeline.axes);
            if let Some(spot) = self.spot(from, at, &extra) {
                let values = extra.iter().map(|(_, value)| *value).collect();
                parts.push((values, spot.output(from, self.instances)?));
            }
        }
        Ok((!parts.is_empty()).then_some(Feed::Collect { axes: along, parts }))
    }

    /// The points of the gathered axes at which every candidate and its metric exist, the last axis fastest.
    fn candidates(
        &self,
        decl: &StageDecl,
        variant: &Variant,
        axes: &StageAxes,
        at: &Point,
    ) -> Vec<Point> {
        let all = &self.pipeline.axes;
        let points = (0..combinations(&axes.gathered, all)).map(|n| point(n, &axes.gathered, all));
        let metric = decl.select.as_ref().map(|select| &select.metric);
        let whole = |extra: &Point| {
            let inputs = variant.inputs.iter().map(|(_, from)| from);
            let mut read = inputs.chain(metric);
            read.all(|from| self.spot(from, at, extra).is_some())
        };
        points.filter(whole).collect()
    }

    fn selection(
        &self,
        decl: &StageDecl,
        at: &Point,
        chosen: Option<Vec<Point>>,
    ) -> Result<Option<Selection>, Diagnostic> {
        let (Some(select), Some(points)) = (&decl.select, chosen) else {
            return Ok(None);
        };
        let mut metrics = Vec::with_capacity(points.len());
        for extra in &points {
            let spot = self.spot(&select.metric, at, extra).expect("looked at");
            match spot.output(&select.metric, self.instances)? {
                Pointer::Made(source) => metrics.push(source),
                Pointer::Best { .. } => {
                    let name = &select.metric.name;
                    return Err(
                        Diagnostic::new(format!("`{name}` picks, and has no metric"))
                            .at(select.metric.span, "name the stage that it picks from"),
                    );
                }
            }
        }
        Ok(Some(Selection {
            metrics,
            column: select.column.clone(),
            best: select.best,
            of: select.metric.name.clone(),
        }))
    }

    /// Connects inputs that are not connected, where the kind says what they follow from.
    pub fn follow(&self, decl: &StageDecl, variant: &Variant, wires: &mut Vec<Wire>) {
        for follow in decl.kind.follows(&variant.params) {
            let connected = |port: &str| wires.iter().find(|wire| wire.port == port);
            if connected(follow.port).is_some() {
                continue;
            }
            let Some(Feed::One(anchor)) = connected(follow.of).map(|wire| &wire.from) else {
                continue;
            };
            let found = anchor.map(&|source| self.taken(source, follow.takes));
            wires.extend(found.map(|pointer| Wire {
                port: follow.port.to_owned(),
                from: Feed::One(pointer),
                filled_in: true,
            }));
        }
    }

    fn taken(&self, source: Source, takes: Takes) -> Option<Pointer> {
        let maker = &self.instances[source.instance];
        match takes {
            Takes::Input(port) => {
                let wire = maker.wires.iter().find(|wire| wire.port == port)?;
                match &wire.from {
                    Feed::One(pointer) => Some(pointer.clone()),
                    Feed::Collect { .. } => None,
                }
            }
            Takes::Output(name) => {
                let output = maker.outputs.iter().position(|known| known == name)?;
                let instance = source.instance;
                Some(Pointer::Made(Source { instance, output }))
            }
        }
    }

    /// A port that wants a certain kind of table does not take another kind.
    fn check_holds(
        &self,
        decl: &StageDecl,
        variant: &Variant,
        port: &str,
        from: &Reference,
        source: Source,
    ) -> Result<(), Diagnostic> {
        let (Inputs::Any(named) | Inputs::Named(named)) = &variant.ports.inputs;
        let Some(Port { holds, .. }) = named.iter().find(|p| p.name == port) else {
            return Ok(());
        };
        let producer = &self.instances[source.instance];
        let kind: &dyn Stage = self.pipeline.stages[producer.stage].kind;
        let made = kind.ports(&producer.params).outputs[source.output].holds;
        if *holds == "table" || made == "table" || *holds == made {
            return Ok(());
        }
        Err(Diagnostic::new(format!(
            "`{}` needs {holds}, but `{}` produces {made}",
            decl.name, from.name
        ))
        .at(from.span, ""))
    }
}

/// Refuses an instance without an input that its kind requires.
pub fn check_required(
    decl: &StageDecl,
    variant: &Variant,
    wires: &[Wire],
) -> Result<(), Diagnostic> {
    let kind = decl.kind.describe().kind;
    let (Inputs::Any(named) | Inputs::Named(named)) = &variant.ports.inputs;
    let connected = |port: &Port| wires.iter().any(|wire| wire.port == port.name);
    let Some(port) = named.iter().find(|p| p.required && !connected(p)) else {
        return Ok(());
    };
    let names = wires.iter().map(|wire| wire.port.as_str());
    let problem = Diagnostic::new(format!("`{}` has no input `{}`", decl.name, port.name))
        .at(
            decl.span,
            format!("`{kind}` requires this input ({})", port.holds),
        )
        .maybe_help(nearest(&port.name, names))
        .help(format!("inputs = {{ {} = \"STAGE\" }}", port.name));
    let follows = decl.kind.follows(&variant.params);
    let follow = follows.iter().find(|follow| follow.port == port.name);
    let anchor = follow.filter(|follow| wires.iter().any(|wire| wire.port == follow.of));
    Err(problem.maybe_help(anchor.map(|follow| {
        format!(
            "it is not known from `{}`: the stage behind that has no such table itself",
            follow.of
        )
    })))
}
