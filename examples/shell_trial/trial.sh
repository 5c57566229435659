#!/bin/sh
# A trial without Python: numbers are written to a text, cut into blocks and compressed; the result is the size.
#
# The parameters are a JSON file, $PITCHPIPE_PARAMETERS; a report is a line appended to the file $PITCHPIPE_REPORTS.
set -eu

parameter() {  # parameter NAME: its value, a number or a word
    sed -n "s/.*\"$1\": *\"\{0,1\}\([^,}\"]*\).*/\1/p" "$PITCHPIPE_PARAMETERS" | head -n 1
}

report() {  # report intermediate|final NUMBER
    echo "{\"$1\": $2}" >> "$PITCHPIPE_REPORTS"
}

format=$(parameter format)
level=$(parameter level)
block=$(parameter block)
block=${block%.*}  # 2000.0 -> 2000: the shell counts in whole numbers

total=0
first=1
while [ "$first" -le 10000 ]; do
    size=$(seq -f "$format" "$first" $((first + block - 1)) | gzip "-$level" | wc -c)
    total=$((total + size))
    first=$((first + block))
    report intermediate $((total * 10000 / (first - 1)))  # what 10,000 lines would take at this rate
done
report final $((total * 10000 / (first - 1)))
