-- UNLINK frees a hash of few fields at once, however large they are: a step of a deletion ends with the pair whose
-- documents take it past so many bytes.
local STEP_BYTES = 16777216
