//! Layers that are left to the host, with the types and shapes of their ports.

use super::layer::{Cx, precision};
use super::net::shortened;
use crate::front::{Operand, Stop};
use crate::{Attribute, DType};

/// A node of the host with the operands that the library has types for, and the reason that no kernel computes it.
pub(super) fn opaque(cx: &mut Cx, reason: String) -> Result<Vec<Operand>, Stop> {
    let mut types: Vec<Result<(DType, Vec<u64>), String>> = vec![];
    for port in &cx.layer.outputs {
        let shape = port.dims.iter().map(|&extent| u64::try_from(extent).ok()).collect::<Option<Vec<u64>>>();
        types.push(match (precision(&port.precision), shape) {
            (Some(of), Some(shape)) => Ok((of, shape)),
            (None, _) => Err(format!("element type {:?} is none of the library's", shortened(&port.precision))),
            (_, None) => {
                return Err(Stop::Wrong("the shape of a result is dynamic; give the model static shapes".into()));
            }
        });
    }
    let mut attributes = vec![("why".to_string(), Attribute::Text(reason))];
    let omitted: Vec<i64> =
        (0..).zip(&cx.inputs).filter(|(_, input)| matches!(input, Operand::Foreign(_))).map(|(i, _)| i).collect();
    if !omitted.is_empty() {
        attributes.push(("omitted_inputs".into(), Attribute::Ints(omitted)));
    }
    let mut data: Vec<_> = cx.layer.data.iter().filter(|(_, value)| value.len() <= 1000).collect();
    data.sort();
    let own = |name: &str| !name.is_empty() && name != "why" && name != "omitted_inputs";
    attributes.extend(
        data.into_iter()
            .filter(|(name, _)| own(name))
            .map(|(name, value)| (name.clone(), Attribute::Text(value.clone()))),
    );
    let inputs: Vec<&Operand> = cx.inputs.iter().filter(|input| !matches!(input, Operand::Foreign(_))).collect();
    let mut name = cx.name;
    let typed: Vec<(&str, DType, &[u64])> =
        types.iter().flatten().map(|(of, shape)| (std::mem::take(&mut name), *of, shape.as_slice())).collect();
    if typed.is_empty() {
        return Ok(types.into_iter().filter_map(Result::err).map(Operand::Foreign).collect());
    }
    let mut values = cx.lower.opaque(&cx.layer.kind, attributes, &inputs, &typed)?.into_iter();
    Ok(types
        .into_iter()
        .map(|of| match of {
            Ok(_) => values.next().unwrap_or_else(|| Operand::Foreign(String::new())),
            Err(reason) => Operand::Foreign(reason),
        })
        .collect())
}
