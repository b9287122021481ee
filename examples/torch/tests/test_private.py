"""What neap_torch needs of torch beside its public interface: each has its own test, which names what has changed."""

import inspect

import pytest
import torch

from neap_torch import torch_private as private


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (private.extract_forward_and_backward, ["joint_module", "saved_values", "saved_sym_nodes", "num_fwd_outputs", "static_lifetime_input_nodes"]),
        (private.min_cut_rematerialization_partition, ["joint_module", "num_fwd_outputs", "static_lifetime_input_indices"]),
        (private.default_partition, ["joint_module", "num_fwd_outputs"]),
        (private.fx_graph_cse, ["fx_g"]),
        (private.is_sym_node, ["node"]),
        (private.apply_graphsafe_rng_functionalization, ["fw_module", "bw_module", "fw_node", "bw_node", "device", "rng_count", "last_fwd_input", "last_bwd_input"]),
        (private.boxed_nop, ["fx_g", "example_inputs"]),
    ],
)  # fmt: skip
def test_arguments(function, arguments):
    has = inspect.signature(function).parameters
    assert [a for a in arguments if a not in has] == []


def test_partitioner():
    assert {"__call__", "uuid"} <= set(dir(private.CustomPartitionerFn))
    assert "custom_partitioner_fn" in private.inductor_config._config


def test_flops():
    assert private.flop_registry


def test_lite():
    options = private.lite_options()
    assert options.get("fallback_by_default") is True
    assert options.get("reorder_for_peak_memory", False) is False


def test_allocations():
    made = private.allocations_of(lambda: torch.sort(torch.empty(1000)))
    assert sum(made) >= 12000 and any(n < 0 for n in made)
