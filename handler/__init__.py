"""The example that template.yaml deploys: a small toolbox for CSV data, with documents on how to read it."""
