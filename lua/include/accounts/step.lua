-- UNLINK frees a hash of few fields in the foreground, however large they are. So a step of a deletion ends with the pair
-- whose documents exceed this many bytes in total.
local STEP_BYTES = 16777216
