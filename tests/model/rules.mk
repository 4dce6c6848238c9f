# rules.mk - make model.

.PHONY: model

model: ## check the model of the rings and the stream with Spin, exhaustively
	tests/model/run --large
