"""A trial that does nothing."""

import pitchpipe

pitchpipe.get_next_parameter()
pitchpipe.report_final_result(0.5)
