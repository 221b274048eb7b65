//! What a stage kind is: it describes itself, and makes tables from tables. Knows no kind by name.

use store::Params;

use super::description::{Choice, Description, Ports, Renamed, Type};
use super::determinism::Determinism;
use super::expected::{ExpectedInputs, ExpectedOutputs, Mismatch};
use super::failure::{Failure, ParamError};
use super::follow::Follow;
use super::program::ProgramSpec;
use super::replayed::Replayed;
use super::role::Role;
use super::task::{Outputs, Task};
use crate::fingerprint::{self, Code};

/// A stage kind.
pub trait Stage: Sync {
    /// What the kind is called, does and takes.
    fn describe(&self) -> &'static Description;

    /// The part that it plays in an experiment.
    fn role(&self) -> Role {
        self.describe().role
    }

    /// The attack that it makes, or trains against, as reports name it. Decides no result.
    fn attack<'p>(&self, params: &'p Params) -> Option<&'p str> {
        let _ = params;
        None
    }

    /// Whether it leaves its rows as they are, as a control for others. Decides no result.
    fn is_control(&self, params: &Params) -> bool {
        let _ = params;
        false
    }

    /// The tables it reads and makes, given its checked parameters.
    fn ports(&self, params: &Params) -> Ports;

    /// The things that one of its parameters chooses from, each with parameters of its own.
    fn choices(&self) -> Vec<Choice> {
        Vec::new()
    }

    /// Its parameters, inputs and values that had other names before.
    fn renamed(&self) -> &'static [Renamed] {
        &[]
    }

    /// What the description's types and ranges cannot say: combinations, syntax.
    /// Parameters have the declared types and their defaults when this is called.
    fn check(&self, params: &Params) -> Result<(), ParamError> {
        let _ = params;
        Ok(())
    }

    /// What the file tells of the outputs, given what it tells of the inputs; or what of them does not fit.
    /// Parameters were checked, and required inputs are connected, when this is called. Decides no result.
    fn expect(
        &self,
        params: &Params,
        inputs: &ExpectedInputs<'_>,
    ) -> Result<ExpectedOutputs, Mismatch> {
        let _ = (params, inputs);
        Ok(Vec::new())
    }

    /// The stages, or outputs of stages, that parameters name, each with the parameter: where no input has that
    /// name, one is added. Decides no result by itself.
    fn reads_by_name(&self, params: &Params) -> Vec<(&'static str, String)> {
        let _ = params;
        Vec::new()
    }

    /// Where inputs come from that are not connected, in the order in which they are filled in. Decides no result by
    /// itself: a key does not tell how an input came to be connected.
    fn follows(&self, params: &Params) -> Vec<Follow> {
        let _ = params;
        Vec::new()
    }

    /// Connected inputs that this stage would not look at, given its parameters and what the file tells of the
    /// inputs: they are dropped, so that they are in no key.
    fn unread(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Vec<&'static str> {
        let _ = (params, inputs);
        Vec::new()
    }

    /// Whether it draws random numbers with these parameters. If not, its seed stays out of the key.
    fn draws(&self, params: &Params) -> bool {
        let _ = params;
        self.describe().seeded
    }

    /// The files beside the pipeline file that these parameters name, each with the parameter
    /// to blame if it cannot be read. Their contents enter the key.
    fn files<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let declared = self
            .describe()
            .params
            .iter()
            .filter(|p| p.ty == Type::Files);
        let named =
            declared.filter_map(|param| Some((param.name, params.get(param.name)?.as_list()?)));
        named
            .flat_map(|(param, names)| {
                names
                    .iter()
                    .filter_map(move |n| Some((param, n.as_text()?)))
            })
            .collect()
    }

    /// The folders that these parameters open to a program, each with the parameter to blame: the
    /// digest of each enters the key, see [`crate::programs::environment`].
    fn environments<'a>(&self, params: &'a Params) -> Vec<(&'static str, &'a str)> {
        let _ = params;
        Vec::new()
    }

    /// The program that these parameters start: what it runs on enters the key, see
    /// [`crate::programs::installed`].
    fn program(&self, params: &Params) -> Option<ProgramSpec> {
        let _ = params;
        None
    }

    /// The parameters that only say when to give up: a result that was made within a limit is the
    /// same within any other, so they stay out of the key.
    fn limits(&self) -> &'static [&'static str] {
        &[]
    }

    /// The code that decides the result. A kind whose parameters or inputs choose between sources
    /// (one attack or another, the model of its `weights`) narrows this, so that editing one leaves the others
    /// cached. What the file does not tell of the inputs may be anything.
    fn code(&self, params: &Params, inputs: &ExpectedInputs<'_>) -> Code {
        let _ = (params, inputs);
        fingerprint::of_kind(self.describe().kind)
    }

    /// What the kind promises of its bytes. Recorded with every result; `ablate verify` holds
    /// it to that.
    fn determinism(&self, params: &Params) -> Determinism {
        let _ = params;
        Determinism::Exact
    }

    /// Recomputes from its inputs what its outputs say of themselves, for kinds whose outputs can
    /// be held to that. `exact`: on the instruction sets that they were made on.
    fn replay(
        &self,
        task: &Task<'_>,
        outputs: &Outputs,
        exact: bool,
    ) -> Option<Result<Replayed, Failure>> {
        let _ = (task, outputs, exact);
        None
    }

    /// Makes the outputs that [`Stage::ports`] promised.
    fn run(&self, task: &Task<'_>) -> Result<Outputs, Failure>;
}
