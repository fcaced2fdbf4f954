"""Sets of questions on agricultural pictures (AG-VQA), each read from its own files by a field map."""
