"""A trial that does nothing."""

import nni

nni.get_next_parameter()
nni.report_final_result(0.5)
